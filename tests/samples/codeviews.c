/* Code that is changed while it is translated, in ways other than a plain store to a page that nobody
 * executes from: an instruction that rewrites the next one, memory mapped twice (writable here,
 * executable there), a file that is written to, a page that is given back, the kernel writing code for a read call, and
 * code on the stack. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef long (*function)(long);
enum { PAGE = 4096 };

static function as_function(void *p)
{
    function f;
    memcpy(&f, &p, sizeof f);
    return f;
}

/* mov eax, value ; ret */
static void returns(uint8_t code[6], int i)
{
    const uint8_t bytes[6] = {0xb8, (uint8_t)i, (uint8_t)(i * 3), 0, 0, 0xc3};
    memcpy(code, bytes, sizeof bytes);
}

static long changes_next_instruction(void)
{
    static const uint8_t code[] = {
        0x31, 0xc0,                               /*     xor eax, eax */
        0x89, 0xf9,                               /* 1:  mov ecx, edi */
        0x48, 0x8d, 0x15, 0x03, 0x00, 0x00, 0x00, /*     lea rdx, [rip + 3] */
        0x89, 0x0a,                               /*     mov [rdx], ecx */
        0x05, 0x00, 0x00, 0x00, 0x00,             /*     add eax, the immediate just written */
        0xff, 0xcf,                               /*     dec edi */
        0x75, 0xec,                               /*     jnz 1b */
        0xc3,
    };
    uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;
    memcpy(p, code, sizeof code);
    for (int i = 1; i < 60; i++) sum = sum * 3 + (unsigned long)as_function(p)(i);
    munmap(p, PAGE);
    return (long)sum;
}

static long two_views(int always_fresh)
{
    int fd = memfd_create("code", 0);
    if (fd < 0 || ftruncate(fd, 2 * PAGE)) return -1;
    uint8_t *w = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *x = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, PAGE);
    unsigned long sum = 0;
    for (int i = 0; i < 100; i++) {
        uint8_t *v = w + PAGE;
        if (always_fresh) v = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
        returns(v, i);
        if (always_fresh) munmap(v, PAGE);
        sum = sum * 7 + (unsigned long)as_function(x)(0);
    }
    munmap(w, 2 * PAGE);
    munmap(x, PAGE);
    close(fd);
    return (long)sum;
}

/* A private mapping that has not been written to is the file's memory. */
static long private_view(void)
{
    int fd = memfd_create("code", 0);
    if (fd < 0 || ftruncate(fd, PAGE)) return -1;
    uint8_t *w = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *x = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    unsigned long sum = 0;
    for (int i = 0; i < 100; i++) {
        returns(w, i);
        sum = sum * 7 + (unsigned long)as_function(x)(0);
    }
    munmap(w, PAGE);
    munmap(x, PAGE);
    close(fd);
    return (long)sum;
}

static int own_file(void)
{
    int fd = open("code.bin", O_RDWR | O_CREAT | O_EXCL, 0600);
    unlink("code.bin");
    return fd >= 0 && !ftruncate(fd, PAGE) ? fd : -1;
}

static long file_written(void)
{
    int fd = own_file();
    uint8_t *x = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), code[6];
    unsigned long sum = 0;
    for (int i = 0; i < 60; i++) {
        returns(code, i);
        if (pwrite(fd, code, sizeof code, 0) != sizeof code) return -1;
        sum = sum * 7 + (unsigned long)as_function(x)(0);
    }
    munmap(x, PAGE);
    close(fd);
    return (long)sum;
}

/* Then the file's code is there again. */
static long given_back(void)
{
    int fd = own_file();
    uint8_t code[6];
    char path[40];
    unsigned long sum = 0;
    returns(code, 1);
    if (pwrite(fd, code, sizeof code, 0) != sizeof code) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int read_only = open(path, O_RDONLY);
    uint8_t *x = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, read_only, 0);
    close(fd);
    for (int i = 0; i < 20; i++) {
        mprotect(x, PAGE, PROT_READ | PROT_WRITE);
        returns(x, i + 2);
        mprotect(x, PAGE, PROT_READ | PROT_EXEC);
        sum = sum * 7 + (unsigned long)as_function(x)(0);
        madvise(x, PAGE, MADV_DONTNEED);
        sum = sum * 7 + (unsigned long)as_function(x)(0);
    }
    munmap(x, PAGE);
    close(read_only);
    return (long)sum;
}

static long moved_view(void)
{
    uint8_t *w = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint8_t *x = mremap(w, 0, PAGE, MREMAP_MAYMOVE);
    unsigned long sum = 0;
    mprotect(x, PAGE, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 100; i++) {
        returns(w, i);
        sum = sum * 7 + (unsigned long)as_function(x)(0);
    }
    return (long)sum;
}

static long read_from_pipe(void)
{
    uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;
    int ends[2];
    if (pipe(ends)) return -1;
    for (int i = 0; i < 100; i++) {
        uint8_t code[6];
        returns(code, i);
        if (write(ends[1], code, 6) != 6 || read(ends[0], p, 6) != 6) return -1;
        sum = sum * 7 + (unsigned long)as_function(p)(0);
    }
    return (long)sum;
}

/* Past the page's protection. */
static long written_as_file(void)
{
    uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), code[6];
    unsigned long sum = 0;
    int fd = open("/proc/self/mem", O_RDWR);
    if (fd < 0) return -1;
    for (int i = 0; i < 60; i++) {
        returns(code, i);
        if (i % 2) {
            if (pwrite(fd, code, sizeof code, (off_t)(uintptr_t)p) != sizeof code) return -2;
        } else {
            lseek(fd, (off_t)(uintptr_t)p, SEEK_SET);
            if (write(fd, code, sizeof code) != sizeof code) return -3;
        }
        sum = sum * 7 + (unsigned long)as_function(p)(0);
    }
    close(fd);
    return (long)sum;
}

static long written_by_another_process(void)
{
    uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) {
            returns(p, i);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        sum = sum * 7 + (unsigned long)as_function(p)(0);
    }
    return (long)sum;
}

static long on_stack(void)
{
    uint8_t room[2 * PAGE];
    uint8_t *code = room + sizeof room - 64;
    uintptr_t page = (uintptr_t)room & ~(uintptr_t)(PAGE - 1);
    long sum = 0;
    mprotect((void *)page, 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int i = 0; i < 50; i++) {
        returns(code, i);
        sum = sum * 5 + as_function(code)(0);
    }
    return sum;
}

int main(void)
{
    printf("own next instruction %ld\n", changes_next_instruction());
    printf("two views %ld\n", two_views(0));
    printf("a fresh view each time %ld\n", two_views(1));
    printf("a view made by mremap %ld\n", moved_view());
    printf("a private view %ld\n", private_view());
    printf("a file that is written %ld\n", file_written());
    printf("a page given back %ld\n", given_back());
    printf("read by the kernel %ld\n", read_from_pipe());
    printf("written as a file %ld\n", written_as_file());
    printf("written by another process %ld\n", written_by_another_process());
    printf("on the stack %ld\n", on_stack());
    return 0;
}
