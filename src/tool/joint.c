/* Joint counters: one that translated code adds to in place of several (weave/joint.c). What it stands for is listed
 * here, and found again by counter, so that the value of one is what it holds itself and a sum over the joint counters
 * in which it is.
 *
 *     joint -> its terms, one behind the other, once for each set of terms: translating the same code again makes none
 *     counter -> a list through the terms that name it
 *
 * All under the process's lock: terms are asked for by translation, values by who has entered the tool. */
#include "tool/state.h"

#include <string.h>

enum { MOST = 1 << 20 }; /* joint counters */

static uint64_t hash_of(const weave_term *terms, uint32_t count)
{
    uint64_t h = count;
    for (uint32_t i = 0; i < count; i++) {
        h = (h ^ terms[i].counter) * 0x9e3779b97f4a7c15ull;
        h = ((h ^ h >> 29) + (uint64_t)terms[i].amount) * 0xbf58476d1ce4e5b9ull;
    }
    return h ^ h >> 32;
}

static bool is_same(const tool_joint_set *set, const weave_term *terms, uint32_t count)
{
    const tool_joint_term *has = &tool_now->joints.terms.items[set->first];
    if (set->count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (has[i].counter != terms[i].counter || has[i].amount != terms[i].amount) return false;
    return true;
}

/* Room in the lists by counter, which begin empty. */
static bool has_heads(tool_joints *j, uint32_t counter)
{
    size_t before = j->heads.count;
    if (counter < before) return true;
    if (!inl_vec_reserve(&j->heads, (size_t)counter + 1)) return false;
    j->heads.count = j->heads.capacity;
    memset(j->heads.items + before, 0, (j->heads.count - before) * sizeof *j->heads.items);
    return true;
}

static bool add_set(tool_joints *j, uint32_t joint, uint64_t hash, const weave_term *terms, uint32_t count)
{
    uint32_t first = (uint32_t)j->terms.count;
    for (uint32_t i = 0; i < count; i++)
        if (!has_heads(j, terms[i].counter)) return false;
    if (!inl_vec_reserve(&j->terms, first + count) || !inl_vec_push(&j->sets, (tool_joint_set){joint, first, count}))
        return false;
    if (!inl_map_put(&j->by_hash, hash, j->sets.count - 1)) {
        j->sets.count--;
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *head = &j->heads.items[terms[i].counter];
        j->terms.items[j->terms.count++] = (tool_joint_term){
            .amount = terms[i].amount, .counter = terms[i].counter, .joint = joint, .next = *head};
        *head = (uint32_t)j->terms.count; /* its number, from 1 on */
    }
    return true;
}

uint32_t tool_joint(const weave_term *terms, uint32_t count)
{
    tool_joints *j = &tool_now->joints;
    uint64_t hash = hash_of(terms, count), at;
    for (; inl_map_get(&j->by_hash, hash, &at); hash++)
        if (is_same(&j->sets.items[at], terms, count)) return j->sets.items[at].joint;
    if (j->sets.count >= MOST) return 0;
    uint32_t joint = tool_counter_fresh(false);
    return joint && add_set(j, joint, hash, terms, count) ? joint : 0;
}

uint64_t tool_joint_part(uint32_t counter, tool_counter_reader *read, const void *of)
{
    const tool_joints *j = &tool_now->joints;
    uint64_t sum = 0;
    for (uint32_t at = counter < j->heads.count ? j->heads.items[counter] : 0; at;) {
        const tool_joint_term *t = &j->terms.items[at - 1];
        sum += (uint64_t)t->amount * read(of, t->joint);
        at = t->next;
    }
    return sum;
}

void tool_joints_end(tool_joints *j)
{
    inl_vec_free(&j->terms);
    inl_vec_free(&j->sets);
    inl_vec_free(&j->heads);
    inl_map_free(&j->by_hash);
}
