/* Makes one mistake with an expression or a record, by its option, at the first block of main. */
#include <inlay.h>

#include <stdint.h>

enum { ARGUMENTS, SIZE, REGISTER, FIELDS, FIELD, RECORD, OPERATOR, EXTENDED, ARGUMENT, NONE };
static const char *const hows[] = {"arguments", "size",     "register", "fields", "field", "record",
                                   "operator",  "extended", "argument", "none",   NULL};
static int how;
static inlay_buffer *buffer, *wide;

static void full(const void *records, size_t count, unsigned thread, void *arg)
{
    (void)records, (void)count, (void)thread, (void)arg;
}

static void routine(uint64_t a) { (void)a; }

static inlay_expr wrong(void)
{
    inlay_expr one = inlay_const(1), many[13];
    for (int i = 0; i < 13; i++) many[i] = one;
    switch (how) {
    case ARGUMENTS: return inlay_call_array((void (*)(void))routine, 13, many);
    case SIZE: return inlay_load(one, 3);
    case REGISTER: return inlay_call(routine, inlay_vector_register(16));
    case FIELDS: return inlay_append(buffer, INLAY_FIELD(4, one), INLAY_FIELD(2, one));
    case FIELD: return inlay_append(wide, INLAY_FIELD(264, one));
    case EXTENDED: return inlay_extend(one, 257, false);
    case ARGUMENT: return inlay_argument(1u << 30);
    case OPERATOR: return inlay_binary((inlay_op)99, one, one);
    default: return inlay_call(routine, NULL);
    }
}

static void block(inlay_block *b, void *arg)
{
    static bool done;
    (void)arg;
    if (done) return;
    done = true;
    if (how == RECORD && (!inlay_record(5, 8) || inlay_record(5, 16))) inlay_warn("a second size is taken");
    if (how != RECORD) inlay_insert(inlay_block_entry(b), wrong());
}

int main(int argc, char **argv)
{
    inlay_option_choice(&how, hows, "how", "which mistake");
    inlay_init(&argc, &argv, "makes mistakes");
    buffer = inlay_buffer_new(8, 16, full, NULL);
    wide = inlay_buffer_new(264, 16, full, NULL);
    inlay_on_block(block, NULL);
    return inlay_start();
}
