/* A library's thread-local variables, by the general-dynamic model, and a program that opens it: walk.py. With a second
 * argument it waits for a line before it opens it, or ("after") behind that. */
#ifdef LIBRARY
__thread long counted = 40;
typedef struct pair {
    int a, b;
} pair;
__thread pair both = {1, 2};
long given = 3;
long one_step(int n)
{
    counted += n;
    both.b += n;
    return counted;
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static long (*one_step)(int);
volatile char pair = 1; /* which is none of the library's names */
#ifdef LINKED
extern long given;      /* of which it has a copy */
#endif

static void *work(void *unused)
{
    printf("%ld\n", one_step(1));
    return unused;
}

static void wait_for_line(void)
{
    puts("waits");
    fflush(stdout);
    getchar();
}

int main(int argc, char **argv)
{
    int after = argc > 2 && !strcmp(argv[2], "after");
    if (argc > 2 && !after) wait_for_line();
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    pthread_t t;
    if (!library) return 1;
#ifdef LINKED
    given = 7;
#endif
    if (after) wait_for_line();
    *(void **)&one_step = dlsym(library, "one_step");
    one_step(2);
    if (pthread_create(&t, NULL, work, NULL)) return 1;
    pthread_join(t, NULL);
    printf("%ld\n", one_step(0));
    return 0;
}
#endif
