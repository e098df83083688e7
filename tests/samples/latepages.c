/* Pages of code that are there only when another thread of the program has put them there (userfaultfd): whoever reads
 * what is to run waits for it, also where an instruction begins on one page and ends on the next. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8, LAST = 4094 };

static int faults;
static unsigned char *area;

/* On each page: `mov $number, %eax; ret`, and one more that ends on the next page. */
static void fill(unsigned char *page, int number)
{
    const unsigned char code[] = {0xb8, (unsigned char)number, 0, 0, 0, 0xc3};
    memset(page, 0x90, PAGE);
    memcpy(page + 16, code, sizeof code);
    memcpy(page + LAST, code, PAGE - LAST);
    memcpy(page, code + (PAGE - LAST), sizeof code - (PAGE - LAST));
}

static void *serve(void *unused)
{
    static unsigned char page[PAGE];
    struct uffd_msg m;
    struct pollfd p = {.fd = faults, .events = POLLIN};
    for (;;) {
        poll(&p, 1, -1);
        if (read(faults, &m, sizeof m) != sizeof m || m.event != UFFD_EVENT_PAGEFAULT) continue;
        unsigned char *at = (unsigned char *)(m.arg.pagefault.address & ~(PAGE - 1ull));
        fill(page, (int)((at - area) / PAGE) + 1);
        struct uffdio_copy copy = {.dst = (unsigned long)at, .src = (unsigned long)page, .len = PAGE};
        ioctl(faults, UFFDIO_COPY, &copy);
    }
    return unused;
}

static int call(int at)
{
    int (*code)(void);
    void *address = area + at;
    memcpy(&code, &address, sizeof code);
    return code();
}

int main(void)
{
    pthread_t server;
    struct uffdio_api api = {.api = UFFD_API};
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api)) {
        puts("not to be had here");
        return 0;
    }
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register r = {.range = {(unsigned long)area, PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (area == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &r)) return 1;
    pthread_create(&server, NULL, serve, NULL);
    printf("%d\n", call(16));
    printf("%d\n", call(2 * PAGE + LAST));
    printf("%d %d\n", call(5 * PAGE + 16), call(4 * PAGE + LAST));
    for (int i = 0; i < 3; i++) {
        madvise(area, PAGES * PAGE, MADV_DONTNEED);
        printf("%d %d\n", call(i * PAGE + LAST), call(6 * PAGE + 16));
    }
    return 0;
}
