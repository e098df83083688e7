/* How a procedure is passed its arguments and gives its result, by the convention of its language. */
#include "tool/passing.h"

static bool pass(const image_ctype *proc, tool_passing *at, const image_ctype *t, passed *out)
{
    return proc->convention == IMAGE_CALLS_RUST ? passing_rust(at, t, out) : tool_pass(at, t, out);
}

/* Is what the procedure returns written to where its caller says, in the first argument register? */
static bool has_hidden_pointer(const image_ctype *proc)
{
    passed how;
    const image_ctype *result = proc->of;
    bool whole = image_ctype_is_whole(result) || result->kind == IMAGE_CTYPE_ARRAY;
    if (!tool_result_address || !whole) return false;
    return result->by_reference || (passing_result(proc, &how) && how.how == PASSED_POINTER);
}

bool passing_argument(const image_ctype *proc, unsigned number, passed *out)
{
    const image_member *p;
    size_t n = image_ctype_members(proc, &p);
    if (proc->convention == IMAGE_CALLS_UNKNOWN || number > n) return false;
    if (proc->convention == IMAGE_CALLS_GO) return passing_go(proc, number, out);
    tool_passing at = {.integers = has_hidden_pointer(proc)};
    for (unsigned i = 0; i < number; i++)
        if (!pass(proc, &at, p[i].type, out)) return false;
    return true;
}

bool passing_result(const image_ctype *proc, passed *out)
{
    switch (proc->convention) {
    case IMAGE_CALLS_C: return tool_pass_result(proc->of, out);
    case IMAGE_CALLS_RUST: return passing_rust_result(proc->of, out);
    case IMAGE_CALLS_GO: return passing_go_result(proc, out);
    default: return false;
    }
}
