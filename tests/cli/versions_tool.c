/* What changes while the program runs: code that is shown again, and threads that go to and fro between versions. */
#include <inlay.h>

#include <inttypes.h>

static inlay_counter detailed, worked;
static uint64_t work_at, ticks, shown, refused;
static uint64_t wrong; /* versions that are not what they should be */
static bool detail;
static inlay_proc *work_proc;

/* At every tenth tick, another way to have `work` shown again; between two of them it is counted. */
static void tick(void)
{
    ticks++;
    if (ticks == 10) refused += !inlay_reinstrument_insn(work_at);
    detail = ticks >= 20 && ticks < 30;
    if (ticks == 20) refused += !inlay_reinstrument_proc(work_proc);
    if (ticks == 30) refused += !inlay_reinstrument_image(inlay_proc_image(work_proc));
    if (ticks == 40) refused += !inlay_reinstrument_all();
}

static void go(const inlay_context *now, uint64_t version)
{
    inlay_context here = *now;
    wrong += inlay_code_version() == version || inlay_code_version_switch(8);
    inlay_code_version_switch((unsigned)version);
    wrong += inlay_code_version() != version;
    inlay_resume(&here);
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_proc_at(inlay_insn_address(insn));
    bool first = p && inlay_insn_address(insn) == inlay_proc_address(p), inside = inlay_code_version() == 1;
    const char *name = p ? inlay_proc_name(p) : "";
    bool is_region = !__builtin_strcmp(name, "region");
    wrong += inlay_code_version() > 1;
    if (first && !__builtin_strcmp(name, "work")) {
        shown += !inside;
        if (detail && !inside) inlay_insert(inlay_before(insn), inlay_count(&worked, 1));
    }
    if (first && !__builtin_strcmp(name, "tick") && !inside) inlay_insert(inlay_before(insn), inlay_call(tick));
    if (first && is_region && !inside)
        inlay_insert(inlay_before(insn), inlay_call(go, inlay_context_arg(), inlay_const(1)));
    if (is_region && inside && inlay_insn_is_return(insn))
        inlay_insert(inlay_before(insn), inlay_call(go, inlay_context_arg(), inlay_const(0)));
    else if (inside) inlay_insert(inlay_before(insn), inlay_count(&detailed, 1));
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    inlay_proc *p = inlay_image_is_main(image) ? inlay_image_proc_named(image, "work") : NULL;
    if (!p) return;
    work_proc = p;
    work_at = inlay_proc_address(p);
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(),
            "shown %" PRIu64 " refused %" PRIu64 " worked %" PRIu64 " detailed %" PRIu64 " wrong %" PRIu64 "\n", shown,
            refused, inlay_counter_sum(&worked), inlay_counter_sum(&detailed), wrong);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "changes its instrumentation");
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
