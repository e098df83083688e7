#include "base/near.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };
_Static_assert(LONGEST + 4 <= INL_NEAR_LONGEST, "whatever is near has room");

void inl_near_begin(inl_near *n, const char *wanted)
{
    size_t length = strlen(wanted), most = length / 3;
    *n = (inl_near){.wanted = wanted, .most = length < 3 || length > LONGEST ? 0 : most > 3 ? 3 : most};
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Letters that lack, are too many, are others, or have changed places: by rows of the table of both words' beginnings,
 * of which the last three are kept. */
static size_t distance(const char *a, size_t an, const char *b, size_t bn)
{
    size_t rows[3][LONGEST + 4];
    for (size_t j = 0; j <= bn; j++) rows[0][j] = j;
    for (size_t i = 1; i <= an; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *twice = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= bn; j++) {
            now[j] = least(least(now[j - 1], before[j]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], twice[j - 2] + 1);
        }
    }
    return rows[an % 3][bn];
}

static bool is_listed(const inl_near *n, const char *name)
{
    for (unsigned k = 0; k < n->count; k++)
        if (!strcmp(n->best[k], name)) return true;
    return false;
}

static void put(inl_near *n, const char *name, size_t d)
{
    unsigned at = n->count;
    while (at && n->distance[at - 1] > d) at--;
    if (at == INL_NEAR_MOST) return;
    if (n->count < INL_NEAR_MOST) n->count++;
    for (unsigned k = n->count - 1; k > at; k--) {
        memcpy(n->best[k], n->best[k - 1], sizeof n->best[k]);
        n->distance[k] = n->distance[k - 1];
    }
    strcpy(n->best[at], name);
    n->distance[at] = d;
}

void inl_near_offer_as(inl_near *n, const char *spelled, const char *name)
{
    size_t length = strlen(n->wanted), its = strlen(spelled);
    if (!n->most || its + n->most < length || its > length + n->most || is_listed(n, name)) return;
    size_t d = distance(n->wanted, length, spelled, its);
    if (d <= n->most && strlen(name) < INL_NEAR_LONGEST && strcmp(name, n->wanted) != 0) put(n, name, d);
}

void inl_near_offer(inl_near *n, const char *name) { inl_near_offer_as(n, name, name); }

const char *inl_near_text(const inl_near *n, char *out, size_t size)
{
    size_t at = 0;
    *out = 0;
    for (unsigned k = 0; k < n->count && at < size; k++)
        at += (size_t)snprintf(out + at, size - at, "%s'%s'", k ? ", " : "", n->best[k]);
    return out;
}
