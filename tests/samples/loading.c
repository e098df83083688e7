/* dlopen and dlclose again and again: the library's code goes and comes, perhaps elsewhere. Callbacks
 * from the C library (qsort, bsearch, atexit, pthread_once) run in between. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void at_end(void) { printf("at exit\n"); }
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void just_once(void) { printf("once\n"); }

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(at_end);
    long sum = 0;
    for (int i = 0; i < 30; i++) {
        void *lib = dlopen(argv[1], i & 1 ? RTLD_NOW : RTLD_LAZY);
        if (!lib) {
            printf("%s\n", dlerror());
            return 1;
        }
        int (*call)(int) = (int (*)(int))dlsym(lib, "library_call");
        for (int j = 0; j < 20; j++) sum += call(j);
        dlclose(lib);
        pthread_once(&once, just_once);
    }
    printf("sum %ld\n", sum);
    void *m = dlopen("libm.so.6", RTLD_NOW);
    double (*root)(double) = (double (*)(double))dlsym(m, "sqrt");
    printf("sqrt %.3f\n", root(2));
    return 0;
}
