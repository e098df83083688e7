/* Calls a procedure of the C library five times, and starts and ends three threads. */
#include <pthread.h>
#include <stdlib.h>

static void *body(void *arg) { return arg; }

int main(int argc, char **argv)
{
    long sum = 0;
    (void)argv;
    for (int i = 0; i < 5; i++) sum += labs(argc - i);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, body, NULL) || pthread_join(t, NULL)) return 9;
    }
    return sum == 1 + 0 + 1 + 2 + 3 ? 0 : 8;
}
