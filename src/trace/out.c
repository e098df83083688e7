#include "trace/out.h"
#include "base/json_text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

int trace_out_error(FILE *f)
{
    bool bad = fflush(f) != 0 || ferror(f);
    if (!bad) return 0;
    clearerr(f);
    errno = EIO;
    fputc('\n', f);
    fflush(f);
    return errno;
}

void trace_put_string(FILE *f, const char *s) { inl_json_text(f, s, ""); }

void trace_put_time(FILE *f, int width, double ns)
{
    static const struct {
        double from, unit;
        const char *name;
    } units[] = {{1e9, 1e9, "s "}, {1e6, 1e6, "ms"}, {1e3, 1e3, "us"}, {-1e300, 1, "ns"}};
    double size = ns < 0 ? -ns : ns;
    int k = 0;
    while (size < units[k].from) k++;
    fprintf(f, "%*.*f %s", width - 3, k == 3 ? 0 : 3, ns / units[k].unit, units[k].name);
}

uint64_t trace_file_address(const trace_proc *p) { return p->address - (p->image ? p->image->bias : 0); }

const char *trace_name(const trace_proc *p) { return p->shown; }

void trace_put_event(FILE *f, const trace_event *event)
{
    for (const char *c = event->name; *c; c++) fputc(isalnum((unsigned char)*c) ? *c : '_', f);
}

bool trace_event_is_time(const trace_event *e)
{
    size_t n = strlen(e->name);
    bool is_own = e->how == INLAY_TRACE_BY_ROUTINE && n > 3 && strcmp(e->name + n - 3, "-ns") == 0;
    return is_own || strcmp(e->name, "task-clock") == 0 || strcmp(e->name, "cpu-clock") == 0;
}

inl_status trace_refuse_many(const trace_file *f, const char *form, inl_error *e)
{
    if (f->sessions.count == 1) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "%s has %zu programs, one after the other, and %s has one: --program=N takes one", f->path,
                    f->sessions.count, form);
}

inl_status trace_refuse_counts(const trace_session *s, inl_error *e)
{
    if (s->clock != INLAY_TRACE_COUNTS) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "%s was recorded with --clock=none: how often each procedure was called, not by whom and when",
                    s->program);
}
