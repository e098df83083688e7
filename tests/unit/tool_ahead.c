/* Analyses made by another process meanwhile: the same as made here, in whatever order they are asked for, and none
 * where that process has ended. Nothing is left of it. In a program linked as a tool is. */
#include "base/bytes.h"
#include "cfg/kept.h"
#include "image/image.h"
#include "tool/ahead.h"
#include "tool/rewriter.h"
#include "tool/state.h"
#include "tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { COUNT = 3 }; /* this program, so many times */
static image *images[COUNT];
static char key[CFG_KEPT_KEY] = "test\n";

static bool has_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static void expect_nothing_left(unsigned before)
{
    CHECK(descriptors() == before);
    CHECK(waitpid(-1, NULL, __WALL | WNOHANG) == -1);
    CHECK(errno == ECHILD);
}

static void open_images(void)
{
    inl_error e;
    tool_handoff_data.role = TOOL_INSTRUMENTOR;
    tool_now->blame.phase = BLAME_STARTED; /* or its end would be told as a fault */
    unsetenv("INLAY_CACHE");
    for (int k = 0; k < COUNT; k++) CHECK(image_open("/proc/self/exe", &images[k], &e) == INL_OK);
}

static inl_bytes bytes_of(const cfg_program *p)
{
    inl_bytes b = {0};
    CHECK(cfg_kept_write(p, key, &b));
    return b;
}

static void expect_same(image *im, cfg_program *ahead)
{
    inl_error e;
    cfg_program *here;
    CHECK(ahead);
    CHECK(cfg_program_analyse(im, NULL, &here, &e) == INL_OK);
    inl_bytes a = bytes_of(ahead), b = bytes_of(here);
    CHECK(a.size == b.size && !memcmp(a.data, b.data, a.size));
    inl_bytes_free(&a);
    inl_bytes_free(&b);
    cfg_program_free(here);
    cfg_program_free(ahead);
}

static void test_any_order(void)
{
    unsigned before = descriptors();
    tool_ahead_begin(images, COUNT - 1);
    if (has_processors())
        for (int k = COUNT - 2; k >= 0; k--) expect_same(images[k], tool_ahead_take(images[k]));
    CHECK(!tool_ahead_take(images[COUNT - 1])); /* it was not named */
    tool_ahead_end();
    CHECK(!tool_ahead_take(images[0]));
    expect_nothing_left(before);
}

static void test_analyse(void)
{
    inl_error e;
    cfg_program *p;
    tool_ahead_begin(images, COUNT);
    for (int k = 0; k < COUNT; k++) {
        CHECK(tool_analyse(images[k], NULL, &p, &e) == INL_OK);
        expect_same(images[k], p);
    }
    tool_ahead_end();
}

/* The only child that this process has. */
static pid_t child(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    FILE *f = fopen(path, "r");
    CHECK(f);
    if (fscanf(f, "%d", &pid) != 1) pid = 0;
    fclose(f);
    return pid;
}

static void test_killed(void)
{
    unsigned before = descriptors();
    inl_error e;
    cfg_program *p;
    tool_ahead_begin(images + 2, 1);
    pid_t other = child();
    if (has_processors()) CHECK(other > 0);
    if (other > 0) kill(other, SIGKILL);
    CHECK(!tool_ahead_take(images[2]));
    CHECK(tool_analyse(images[2], NULL, &p, &e) == INL_OK);
    cfg_program_free(p);
    tool_ahead_end();
    expect_nothing_left(before);
}

/* It has nothing to do with signals that are sent to its group, and does not stay behind this process. */
static void test_end(void)
{
    unsigned before = descriptors();
    tool_ahead_begin(images, COUNT);
    tool_ahead_begin(images, COUNT); /* instead */
    tool_ahead_end();
    tool_ahead_end();
    tool_ahead_begin(images, 0);
    expect_nothing_left(before);
}

int main(void)
{
    open_images();
    test_any_order();
    test_analyse();
    test_killed();
    test_end();
    for (int k = 0; k < COUNT; k++) image_close(images[k]);
    puts("analyses made ahead: good");
    return 0;
}
