/* Unmaps everything between its own mappings, where there is nothing: what somebody else keeps there, and hides from
 * the list, must outlive that; and so must the program. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, LOWEST = 1 << 20 };
#define HIGHEST 0x7ffffffff000u

static char text[1 << 18];

/* The list as it was before anything else is asked for. */
static void read_maps(void)
{
    int fd = open("/proc/self/maps", O_RDONLY);
    size_t size = 0;
    for (ssize_t n; size < sizeof text - 1 && (n = read(fd, text + size, sizeof text - 1 - size)) > 0;)
        size += (size_t)n;
    close(fd);
}

static void unmap(uint64_t low, uint64_t high, unsigned *bad)
{
    if (low >= high) return;
    *bad += munmap((void *)(uintptr_t)low, high - low) != 0;
    *bad += munmap((void *)(uintptr_t)(high - PAGE), 1) != 0;
    *bad += munmap((void *)(uintptr_t)low, 1) != 0;
}

static uint64_t work(uint64_t n)
{
    static volatile uint64_t sink;
    for (uint64_t i = 0; i < 1000; i++) sink += i * n;
    return sink;
}

int main(void)
{
    unsigned bad = 0;
    uint64_t last = LOWEST, low, high;
    read_maps();
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        low = strtoull(line, &line, 16);
        high = strtoull(line + 1, &line, 16);
        if (low > HIGHEST) break;
        unmap(last, low, &bad);
        last = high > last ? high : last;
    }
    unmap(last, HIGHEST, &bad);
    printf("gaps that could not be unmapped: %u\n", bad);
    printf("goes on: %lu\n", (unsigned long)work(3));
    return 0;
}
