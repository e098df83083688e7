/* Looks at the state that analysis routines find: one that is called through a pointer, so that Inlay cannot know
 * what it does, must find what the ABI promises whatever the program has set; a short one and one that computes
 * make unaligned accesses, which the program may have forbidden to itself; time stamps can be had. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

enum { UNPLAIN = 0x40400 /* direction, alignment */ };

typedef struct found {
    uint64_t calls, flags, mxcsr, control, wrong_words, times, unaligned[3];
    double halves;
} found;

static void look(found *f)
{
    uint32_t mxcsr;
    uint16_t control;
    uint64_t word;
    __asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr), "=m"(control));
    f->calls++;
    f->flags |= __builtin_ia32_readeflags_u64() & UNPLAIN;
    f->mxcsr += mxcsr != 0x1f80;
    f->control += control != 0x37f;
    memcpy(&word, (const char *)f->unaligned + 1, sizeof word);
    f->wrong_words += word != 0x1122334455667788;
    f->times += __builtin_ia32_rdtsc() == 0;
}

static void (*volatile looks)(found *) = look;
static void unknown(found *f) { looks(f); }

static void word_is(found *f, uint64_t at)
{
    if (*(const volatile uint64_t *)(at + 1) != 0x1122334455667788) f->wrong_words++;
}

/* Long enough not to be written in place of its call. */
static void words_are(found *f, uint64_t at, uint64_t now)
{
    for (int i = 0; i < 3; i++) {
        const volatile uint64_t *word = (const volatile uint64_t *)(at + 1);
        f->wrong_words += (*word ^ 0x1122334455667788) != 0 || !now;
    }
    f->halves += (double)now * 0.5;
}

static void each_block(inlay_block *block, void *arg)
{
    found *f = arg;
    inlay_point *at = inlay_block_entry(block);
    inlay_expr words = inlay_pointer(f->unaligned);
    inlay_insert(at, inlay_call(unknown, inlay_pointer(f)));
    inlay_insert(at, inlay_call(word_is, inlay_pointer(f), words));
    inlay_insert(at, inlay_call(words_are, inlay_pointer(f), words, inlay_cycles()));
}

static void report(int status, void *arg)
{
    const found *f = arg;
    if (f->halves <= 0) status = -1;
    fprintf(inlay_out(),
            "status %d, called %s, flags %" PRIx64 ", mxcsr %" PRIu64 ", control %" PRIu64 ", words %" PRIu64
            ", times %" PRIu64 "\n",
            status, f->calls > 100 ? "often" : "hardly", f->flags, f->mxcsr, f->control, f->wrong_words, f->times);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "looks at the state that analysis routines find");
    found *f = inlay_alloc(sizeof *f);
    uint64_t word = 0x1122334455667788;
    memcpy((char *)f->unaligned + 1, &word, sizeof word);
    inlay_on_block(each_block, f);
    inlay_on_exit(report, f);
    return inlay_start();
}
