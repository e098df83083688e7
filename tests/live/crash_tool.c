/* A tool that ends where the variable CRASH says; in a process that it is put into, where that one's says. */
#include <inlay.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_at(const char *place)
{
    const char *wanted = getenv("CRASH");
    return wanted && !strcmp(wanted, place);
}

static void fault(void)
{
    static volatile int *volatile nowhere;
    *nowhere = 1;
}

static void on_image(inlay_image *i, void *arg)
{
    (void)i, (void)arg;
    if (is_at("image")) fault();
}

static void on_thread(inlay_thread *t, void *arg)
{
    (void)t, (void)arg;
    if (is_at("thread")) fault();
    if (is_at("thread-exit")) exit(5);
    if (is_at("thread-abort")) abort();
}

static void on_exit_of_it(int status, void *arg)
{
    (void)status, (void)arg;
    if (is_at("exit")) fault();
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "ends where it is told to");
    if (is_at("main")) fault();
    if (is_at("main-exit")) exit(3);
    if (is_at("main-abort")) abort();
    inlay_on_image_load(on_image, NULL);
    inlay_on_thread_start(on_thread, NULL);
    inlay_on_exit(on_exit_of_it, NULL);
    return inlay_start();
}
