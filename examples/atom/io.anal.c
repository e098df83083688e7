#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 1024 };
struct way { long calls, bytes, cycles; };
static struct file { char *name; struct way in, out; } files[FILES];

static __thread char *opening;
static __thread struct way *now;
static __thread long since;

void Opening(char *path, long flags, long cycles)
{
    free(opening);
    opening = path ? strdup(path) : NULL;
}

void Opened(long fd, long cycles)
{
    if ((int)fd < 0 || (int)fd >= FILES) return;
    files[(int)fd].name = opening;
    opening = NULL;
}

static void begin(int fd, int writes, long cycles)
{
    now = fd < 0 || fd >= FILES ? NULL : writes ? &files[fd].out : &files[fd].in;
    since = cycles;
}

void Reading(long fd, long buffer, long cycles) { begin((int)fd, 0, cycles); }
void Writing(long fd, long buffer, long cycles) { begin((int)fd, 1, cycles); }

void Done(long bytes, long cycles)
{
    if (now == NULL) return;
    now->calls++;
    now->cycles += cycles - since;
    if (bytes > 0) now->bytes += bytes;
    now = NULL;
}

static void line(FILE *f, int fd, char *verb, struct way *w)
{
    if (w->calls == 0) return;
    fprintf(f, "%d %s %s: %ld calls, %ld bytes", fd, files[fd].name ? files[fd].name : "-", verb, w->calls,
            w->bytes);
    if (getenv("IO_CYCLES")) fprintf(f, ", %ld cycles", w->cycles);
    fprintf(f, "\n");
}

void Report()
{
    FILE *f = fopen("io.out", "w");
    int fd;
    for (fd = 0; fd < FILES; fd++) {
        line(f, fd, "read", &files[fd].in);
        line(f, fd, "written", &files[fd].out);
    }
    fclose(f);
}
