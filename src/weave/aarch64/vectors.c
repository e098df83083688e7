/* Which vector state there is, decided where the program runs and not where code was woven. */
#include "weave/aarch64/vectors.h"

#include <stdbool.h>
#include <sys/auxv.h>

enum { HAS_SVE = 1 << 22 }; /* of AT_HWCAP */

_Static_assert(offsetof(weave_frame, vector_area) == OFF_VECTOR_AREA, "vectors.h");

void weave_vectors_choose(weave_frame *f)
{
    bool is_long = getauxval(AT_HWCAP) & HAS_SVE;
    f->save_vectors = is_long ? weave_save_sve : weave_save_neon;
    f->load_vectors = is_long ? weave_load_sve : weave_load_neon;
}
