/* Which calls are recorded where not each is: one in so many (every), fewer and fewer of a procedure that is called
 * very often (thin), none (counts).
 *
 * What is to be known of a procedure's calls is in slots: the main stack's in the procedure itself, for each thread
 * else, and for what runs on other stacks, in its own. Of calls on the main stack, up to the next one that may be
 * recorded, the program's code counts down itself (tells.h); `given` grows with what it may count down, so that
 * given - left is how many calls there have been, whoever interrupts whom meanwhile.
 *
 * The rules are those of tools/trace_select.c: a call is recorded whole or not at all, and not within a recorded one of
 * the same procedure. */
#include "record/recorder.h"

enum { NEAR = 1 << 20, TEN = 10 };
static const int64_t NEVER = (int64_t)1 << 62;

static struct {
    const record_settings *asked;
    record_table *free; /* of threads that have ended */
    inlay_mutex lock;
} here;

void record_choose_begin(const record_settings *s) { here.asked = s; }
void record_choose_forked(void) { here.lock.word = 0; }
bool record_chooses(const record_settings *s) { return s->clock == RECORD_COUNTS || s->every > 1 || s->thin; }

/* --- slots --- */

/* For another thread: what has been counted stays so. */
static void renew(record_slot *s)
{
    s->given -= s->left;
    s->left = 0;
    s->sp = s->base = s->recorded = 0;
    s->every = s->pending = 0;
    s->early = false;
}

void record_table_give(record_thread *t)
{
    record_table *table = t->table;
    if (!table) return;
    for (size_t i = 0; i < RECORD_PIECES; i++)
        for (size_t k = 0; table->pieces[i] && k < RECORD_PIECE; k++) renew(&table->pieces[i][k]);
    inlay_lock(&here.lock);
    table->next = here.free;
    here.free = table;
    t->table = NULL;
    inlay_unlock(&here.lock);
}

static record_table *table_new(void)
{
    inlay_lock(&here.lock);
    record_table *table = here.free;
    if (table) here.free = table->next;
    inlay_unlock(&here.lock);
    return table ? table : record_memory(sizeof *table);
}

/* The thread's own of a procedure, made if `may_make`; NULL: it has none. */
static record_slot *own_slot(record_thread *t, record_proc *p, bool may_make)
{
    uint32_t at = p->traced.number / RECORD_PIECE, in = p->traced.number % RECORD_PIECE;
    if (at >= RECORD_PIECES) return &p->main; /* so many procedures: one slot for all threads */
    if (!t->table && may_make) t->table = table_new();
    if (!t->table) return NULL;
    record_slot **piece = &t->table->pieces[at];
    if (!*piece && may_make) *piece = record_memory(RECORD_PIECE * sizeof **piece);
    record_slot *s = *piece ? &(*piece)[in] : NULL;
    if (!s || s->listed) return s;
    if (!may_make) return NULL;
    inlay_lock(&here.lock);
    s->next = p->slots;
    p->slots = s;
    s->listed = true;
    inlay_unlock(&here.lock);
    return s;
}

static int64_t *left_of(record_slot *s, record_proc *p)
{
    return s == &p->main && p->stays ? &p->tells->left : &s->left;
}

static void let(record_slot *s, int64_t *left, int64_t calls)
{
    int64_t more = calls - __atomic_load_n(left, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->given, more, __ATOMIC_RELAXED);
    __atomic_fetch_add(left, more, __ATOMIC_RELAXED);
}

/* By their numbers. */
enum { PIECE = 1024, PIECES = 4096 };
static record_proc **pieces[PIECES];

record_proc *record_proc_of(uint32_t number)
{
    record_proc **piece = number / PIECE < PIECES ? pieces[number / PIECE] : NULL;
    return piece ? __atomic_load_n(&piece[number % PIECE], __ATOMIC_ACQUIRE) : NULL;
}

bool record_proc_keep(record_proc *p)
{
    uint32_t at = p->traced.number / PIECE;
    if (at >= PIECES) return false;
    if (!pieces[at]) pieces[at] = record_memory(PIECE * sizeof **pieces);
    if (pieces[at]) __atomic_store_n(&pieces[at][p->traced.number % PIECE], p, __ATOMIC_RELEASE);
    return pieces[at] != NULL;
}

/* --- entries and exits --- */

static void open_more(record_proc *p, int by) { __atomic_fetch_add(&p->tells->open, (uint32_t)by, __ATOMIC_RELAXED); }

/* Every so many records of a procedure, ten times fewer of its calls are recorded. */
static void grow_rarer(record_slot *s, uint64_t sp)
{
    if (++s->recorded < here.asked->thin) return;
    uint64_t every = (s->every ? s->every : 1) * (uint64_t)TEN;
    s->every = every < UINT32_MAX ? (uint32_t)every : UINT32_MAX;
    s->recorded = 0;
    if (s->base < sp) s->base = sp;
}

static bool takes(record_slot *s, int64_t *left, record_proc *p, uint64_t sp)
{
    if (s->every && s->sp > sp && s->sp - sp < NEAR) {
        let(s, left, 0);
        return false;
    }
    if (s->every && s->sp && !s->early) open_more(p, -1); /* it was left by an exception, say */
    s->early = here.asked->thin && !s->every;
    s->pending += s->early;
    s->sp = sp;
    if (here.asked->thin) grow_rarer(s, sp);
    else s->every = (uint32_t)here.asked->every;
    let(s, left, s->every ? (int64_t)s->every - 1 : 0);
    open_more(p, 1);
    return true;
}

static bool enters(record_slot *s, record_proc *p, uint64_t sp, bool counted)
{
    int64_t *left = left_of(s, p);
    if (!counted && __atomic_sub_fetch(left, 1, __ATOMIC_RELAXED) >= 0) return false;
    if (!p->counts) return takes(s, left, p, sp);
    let(s, left, NEVER);
    return false;
}

/* Of calls that were recorded before they became fewer, the outermost: one that is taken for such does no harm. */
static bool leaves(record_slot *s, record_proc *p, uint64_t sp)
{
    if (s->sp == sp) {
        s->sp = 0;
        s->pending -= s->early;
    } else if (s->pending && (!s->every || sp > s->base)) {
        s->pending--;
        if (s->every) s->base = sp;
    } else {
        return false;
    }
    open_more(p, -1);
    return true;
}

static record_chosen choose(record_tells *tells, unsigned is_exit, uint64_t sp, bool may_make, bool first)
{
    record_thread *t = &record_me;
    record_proc *p = record_proc_of(tells->number & ~(uint32_t)RECORD_SOME);
    if (!p) return RECORD_ASK;
    bool main = p->stays && sp >= p->tells->low;
    record_slot *s = main ? &p->main : own_slot(t, p, may_make);
    if (!s) return may_make ? RECORD_NOT : RECORD_ASK;
    return (is_exit ? leaves(s, p, sp) : enters(s, p, sp, main && !first)) ? RECORD_THIS : RECORD_NOT;
}

record_chosen record_choose(record_tells *tells, unsigned is_exit, uint64_t sp)
{
    return record_me.inside ? RECORD_NOT : choose(tells, is_exit, sp, false, false);
}

bool record_choose_slowly(record_tells *tells, unsigned is_exit, uint64_t sp, bool first)
{
    return choose(tells, is_exit, sp, true, first) == RECORD_THIS;
}

/* --- a procedure --- */

/* Its first call: from now on its code asks, or counts itself. `low` comes last. */
void record_choose_proc(record_proc *p, uint64_t low)
{
    record_tells *t = p->tells;
    p->chosen = true;
    p->counts = here.asked->clock == RECORD_COUNTS || t->flags & RECORD_ENTRIES;
    __atomic_store_n(&t->open, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&t->number, p->traced.number | RECORD_SOME, __ATOMIC_RELEASE);
    if (p->stays) __atomic_store_n(&t->low, low, __ATOMIC_RELEASE);
}

/* How often it has been called. */
uint64_t record_choose_calls(record_proc *p)
{
    int64_t calls = p->main.given - *left_of(&p->main, p);
    for (const record_slot *s = p->slots; s; s = s->next) calls += s->given - s->left;
    return calls > 0 ? (uint64_t)calls : 0;
}

/* In a child of fork they begin anew; calls that were being recorded are not. */
void record_choose_anew(record_proc *p)
{
    p->main.given = *left_of(&p->main, p);
    p->main.sp = p->main.pending = 0;
    for (record_slot *s = p->slots; s; s = s->next) {
        s->given = s->left;
        s->sp = s->pending = 0;
    }
    if (p->stays && p->tells->number & RECORD_SOME) p->tells->open = 0;
}
