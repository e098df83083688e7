/* A C program: for each line that it reads it walks over its stack, by an unwinder that it opens for that and closes
 * again, or (each third time) by the C library's backtrace, which opens it by itself and keeps it. Says offsets in
 * files, as walks.cc does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

enum { MOST = 64 };
typedef struct frames {
    void *all[MOST];
    int count;
} frames;

static _Unwind_Reason_Code (*walks)(_Unwind_Trace_Fn, void *);
static _Unwind_Ptr (*place)(struct _Unwind_Context *);

static _Unwind_Reason_Code each(struct _Unwind_Context *c, void *arg)
{
    frames *f = arg;
    if (f->count < MOST) f->all[f->count++] = (void *)place(c);
    return _URC_NO_REASON;
}

__attribute__((noinline)) static void walk(const char *from)
{
    frames f = {.count = 0};
    printf("%s\n", from);
    if (walks) walks(each, &f);
    else f.count = backtrace(f.all, MOST);
    for (int i = 0; i < f.count; i++) {
        Dl_info info;
        bool known = dladdr(f.all[i], &info) != 0;
        const char *file = known ? strrchr(info.dli_fname, '/') : NULL;
        unsigned long at = (unsigned long)f.all[i] - (known ? (unsigned long)info.dli_fbase : 0);
        printf("  %s+%#lx\n", file ? file + 1 : known ? info.dli_fname : "?", at);
    }
}

static bool said;
static int by_number(const void *x, const void *y)
{
    if (!said) walk("compared");
    said = true;
    return *(const int *)x - *(const int *)y;
}

static void on_signal(int signo)
{
    (void)signo;
    walk("in a handler");
}

static void *thread(void *arg)
{
    walk("in a thread");
    return arg;
}

static void *open_unwinder(void)
{
    void *handle = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) exit(2);
    *(void **)&walks = dlsym(handle, "_Unwind_Backtrace");
    *(void **)&place = dlsym(handle, "_Unwind_GetIP");
    return handle;
}

int main(void)
{
    char line[16];
    signal(SIGUSR1, on_signal);
    for (int n = 1; fgets(line, sizeof line, stdin); n++) {
        void *handle = n % 3 ? open_unwinder() : NULL;
        int numbers[] = {3, 1, 2};
        pthread_t t;
        said = false;
        walk("main");
        qsort(numbers, 3, sizeof *numbers, by_number);
        raise(SIGUSR1);
        if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL)) exit(2);
        if (handle) dlclose(handle);
        walks = NULL;
        printf("walked %d\n", n);
        fflush(stdout);
    }
    return 0;
}
