/* One file of objects, instrumented: which procedures, how it is told, and the writing, under another name first. */
#include "cli/object.h"
#include "image/image.h"
#include "object/object.h"
#include "trace/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- which --- */

static bool add(const char **list, unsigned *count, const char *pattern)
{
    if (*count == 255) {
        cli_say("more than 255 patterns");
        return false;
    }
    list[(*count)++] = pattern;
    return true;
}

static bool add_list(object_choice *c, char *list)
{
    bool good = true;
    for (char *rest, *one = strtok_r(list, ",", &rest); one && good; one = strtok_r(NULL, ",", &rest))
        good = add(c->only, &c->only_count, one);
    return good;
}

int object_choice_take(object_choice *c, char **argv)
{
    char *end;
    if (strcmp(argv[0], "--all") == 0) return add(c->only, &c->only_count, "*") ? 1 : -1;
    if (strcmp(argv[0], "-fn") == 0) return argv[1] ? add_list(c, argv[1]) ? 2 : -1 : 0;
    if (strcmp(argv[0], "-F") == 0 && argv[1]) return add(c->only, &c->only_count, argv[1]) ? 2 : -1;
    if (strcmp(argv[0], "-N") == 0 && argv[1]) return add(c->not, &c->not_count, argv[1]) ? 2 : -1;
    bool path = strncmp(argv[0], "--min-path=", 11) == 0;
    if (path || strncmp(argv[0], "--min-size=", 11) == 0) {
        *(path ? &c->min_path : &c->min_size) = strtoull(argv[0] + 11, &end, 0);
        if (argv[0][11] && !*end) return 1;
        cli_say("%s: not a number of %s", argv[0], path ? "instructions" : "bytes");
        return -1;
    }
    return object_settings_take(c, argv);
}

static bool wanted(void *arg, const char *name, uint64_t size)
{
    object_choice *c = arg;
    bool want = false;
    for (unsigned i = 0; i < c->only_count; i++) {
        if (!image_name_matches(name, c->only[i])) continue;
        want = c->met[i] = true;
    }
    for (unsigned i = 0; i < c->not_count; i++) want = want && !image_name_matches(name, c->not [i]);
    return want && size >= c->min_size;
}

/* --- telling --- */

void object_log_begin(object_log *l)
{
    if (l->to && l->json) fputs("{\n  \"objects\": [", l->to);
}

void object_log_end(object_log *l)
{
    if (!l->to) return;
    if (l->json) fprintf(l->to, "\n  ],\n  \"instrumented\": %lu,\n  \"refused\": %lu\n}\n", l->done, l->refused);
    else fprintf(l->to, "%lu procedures instrumented, %lu refused\n", l->done, l->refused);
}

static void tell_json(object_log *l, const char *file, const object_report *r)
{
    fprintf(l->to, "%s\n    {\"file\": ", l->began ? "," : "");
    trace_put_string(l->to, file);
    fputs(", \"procedures\": [", l->to);
    for (size_t i = 0; i < r->count; i++) {
        const object_proc *p = &r->procs[i];
        fprintf(l->to, "%s\n      {\"name\": ", i ? "," : "");
        trace_put_string(l->to, p->name);
        fprintf(l->to, ", \"size\": %lu, ", p->size);
        if (!p->why) fprintf(l->to, "\"instrumented\": true, \"exits\": %u}", p->exits);
        else fputs("\"instrumented\": false, \"why\": ", l->to), trace_put_string(l->to, p->why), fputc('}', l->to);
    }
    fputs("]}", l->to);
}

static void tell(void *arg, const char *file, const object_report *r)
{
    object_log *l = arg;
    char room[2048];
    for (size_t i = 0; i < r->count; i++) *(r->procs[i].why ? &l->refused : &l->done) += 1;
    if (!l->to) return;
    if (l->json) tell_json(l, file, r);
    for (size_t i = 0; i < r->count && !l->json; i++)
        if (r->procs[i].why)
            fprintf(l->to, "%s: %s: not instrumented: %s\n", file, image_demangle(r->procs[i].name, room, sizeof room),
                    r->procs[i].why);
    l->began = true;
}

/* --- files --- */

static inl_status failed(const char *path, const char *what, inl_error *e)
{
    return inl_fail(e, INL_ERR_SYSTEM, "%s: %s: %s", path, what, strerror(errno));
}

static inl_status read_file(const char *path, void **bytes, struct stat *st, inl_error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return failed(path, "cannot be opened", e);
    *bytes = MAP_FAILED;
    bool regular = fstat(fd, st) == 0 && S_ISREG(st->st_mode);
    if (regular && st->st_size) *bytes = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (!regular) return inl_fail(e, INL_ERR_FORMAT, "%s: not a regular file", path);
    if (!st->st_size) return inl_fail(e, INL_ERR_FORMAT, "%s: an empty file", path);
    return *bytes == MAP_FAILED ? failed(path, "cannot be read", e) : INL_OK;
}

static inl_status write_file(const char *path, const inl_bytes *b, mode_t mode, inl_error *e)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return inl_fail(e, INL_ERR_USAGE, "%s: the name is too long", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) return failed(path, "cannot be written", e);
    size_t done = 0;
    while (done < b->size) {
        ssize_t n = write(fd, b->data + done, b->size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    bool good = done == b->size && fchmod(fd, mode & 0777) == 0;
    good = close(fd) == 0 && good && rename(temporary, path) == 0;
    inl_status st = good ? INL_OK : failed(path, "cannot be written", e);
    if (!good) unlink(temporary);
    return st;
}

inl_status object_do_file(const char *from, const char *to, object_choice *choice, object_log *log, inl_error *e)
{
    void *bytes = NULL;
    struct stat info;
    inl_bytes out = {0};
    object_report report = {0};
    const object_options options = {.wanted = wanted,
                                    .arg = choice,
                                    .min_path = choice->min_path,
                                    .entries = choice->counts,
                                    .settings = choice->settings};
    inl_status st = read_file(from, &bytes, &info, e);
    if (st) return st;
    size_t size = (size_t)info.st_size;
    if (object_is_archive(bytes, size)) {
        st = object_archive(bytes, size, from, &options, tell, log, &out, e);
    } else {
        st = object_instrument(bytes, size, from, &options, &out, &report, e);
        if (!st) tell(log, from, &report);
    }
    if (!st) st = write_file(to, &out, info.st_mode, e);
    object_report_free(&report);
    inl_bytes_free(&out);
    munmap(bytes, size);
    return st;
}
