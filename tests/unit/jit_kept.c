/* Files of kept translations: what is written comes back, and whatever happens to a file, what comes back is what was
 * written or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/kept_file.h"
#include "weave/weave.h"

enum { ENTRIES = 5, EXITS = 5, MANY = 3 * KEPT_TOGETHER + 7, ROOM = 512 << 10 };
static const char key[] = "inlay test\nmodule /some/file\ncounters 2\n";
static char path[] = "/tmp/inlay-kept.XXXXXX";
static int folder;
static uint64_t room[KEPT_GROUP / 8];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(path)) return -1;
    folder = open(path, O_RDONLY | O_DIRECTORY);
    return folder < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    kept_folder_trim(folder, 0);
    close(folder);
    return rmdir(path);
}

static uint64_t app_of(unsigned i) { return 0x1000 + 0x123u * i; }

/* One of each kind of part, filled with what tells entries apart. */
static size_t make_entry(uint64_t *memory, unsigned i)
{
    kept_head *h = (kept_head *)memory;
    kept_entry e;
    memset(memory, 0, KEPT_ENTRY);
    *h = (kept_head){
        .app = app_of(i), .continues = i % 2, .phase = (uint8_t)(i % 8), .insn_count = i + 1, .cold_at = 2};
    h->exits = (uint16_t)(1 + i % EXITS), h->consts = 1, h->fixups = (uint16_t)(i % EXITS), h->extents = 1,
    h->looks = (uint16_t)(i % 3), h->blocks = 2, h->faults = 1;
    h->counts = 1, h->weights = (uint16_t)(2 * (i % EXITS));
    h->code_size = 20 + i, h->map_size = 3, h->source_size = 9 + i;
    h->size = (uint32_t)kept_entry_lay(memory, &e);
    memset((uint8_t *)(h + 1), (int)(0x40 + i), h->size - sizeof *h);
    for (unsigned k = 0; k < h->exits; k++) e.exits[k] = (kept_exit){app_of(i + k), k, 0};
    h->cut = i % 2 == 0; /* then the last exit leads to what goes on, if that stands in line */
    return h->size;
}

/* An exit leads to the entry of its group that has its target's address, and is of its kind. The group is as it was
 * made then, without what it has been told about that. */
static void check_links(const kept_group *g, const kept_entry *e)
{
    for (unsigned k = 0; k < e->head->exits; k++) {
        kept_entry other;
        bool goes_on = e->head->cut && k < e->head->cold_at && (k + 1 == e->head->exits || k + 1 == e->head->cold_at);
        unsigned found = 0;
        for (unsigned i = 0; i < g->count; i++) {
            assert_true(kept_group_entry(g, i, &other));
            if (other.head->app == e->exits[k].target && other.head->continues == goes_on) found = i + 1;
        }
        assert_int_equal(e->exits[k].to, found);
        e->exits[k].to = 0;
    }
}

static size_t make_all(uint8_t *to, unsigned first, unsigned count)
{
    static uint64_t one[KEPT_ENTRY / 8];
    size_t at = 0;
    for (unsigned i = first; i < first + count; i++) {
        size_t n = make_entry(one, i);
        memcpy(to + at, one, n);
        at += n;
    }
    return at;
}

/* Found and as it was written; a wrong one ends the test. */
static bool is_there(kept_map *m, unsigned i)
{
    static uint64_t expected[KEPT_ENTRY / 8];
    uint32_t tried = 0;
    unsigned index;
    kept_entry e;
    if (!kept_find(m, app_of(i), i % 2, room, &tried, &index)) return false;
    assert_true(kept_group_entry((const kept_group *)room, index, &e));
    size_t n = make_entry(expected, i);
    check_links((const kept_group *)room, &e);
    assert_memory_equal(e.head, expected, n);
    assert_int_equal(e.head->exits, 1 + i % EXITS);
    assert_int_equal((e.code + e.head->code_size - (const uint8_t *)e.head + 7) / 8, n / 8);
    return true;
}

static void write_entries(const kept_map *old, unsigned first, unsigned count)
{
    static uint8_t fresh[ROOM];
    size_t n = make_all(fresh, first, count);
    assert_true(kept_write(old, fresh, n, folder, key, geteuid()));
}

static void file_path(char out[128])
{
    char name[KEPT_NAME];
    kept_name(key, name);
    snprintf(out, 128, "%s/%s", path, name);
}

static void comes_back(void **state)
{
    (void)state;
    kept_map m, none = {0};
    struct stat st;
    char file[128];
    uint32_t tried = 0;
    unsigned index;
    assert_false(kept_open(&m, folder, key));
    write_entries(&none, 0, 3);
    file_path(file);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(kept_open(&m, folder, key));
    assert_int_equal(m.entries, 3);
    for (unsigned i = 0; i < ENTRIES; i++) assert_int_equal(is_there(&m, i), i < 3);
    assert_false(kept_find(&m, app_of(1), false, room, &tried, &index)); /* it is one that continues */
    tried = 0;
    assert_false(kept_find(&m, app_of(0) + (1ull << 32), false, room, &tried, &index));
    write_entries(&m, 3, 2); /* beside the old ones */
    kept_close(&m);
    assert_true(kept_open(&m, folder, key));
    assert_int_equal(m.entries, ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++) assert_true(is_there(&m, i));
    kept_close(&m);
}

/* More than go into a group, and one of an address that has been there before: both are found, one after the other. */
static void many_and_twice(void **state)
{
    (void)state;
    kept_map m, none = {0};
    kept_entry e;
    uint32_t tried = 0;
    unsigned index, seen = 0;
    write_entries(&none, 0, MANY);
    assert_true(kept_open(&m, folder, key));
    assert_int_equal(m.entries, MANY);
    for (unsigned i = 0; i < MANY + 2; i++) assert_int_equal(is_there(&m, i), i < MANY);
    write_entries(&m, 2, 1);
    kept_close(&m);
    assert_true(kept_open(&m, folder, key));
    assert_int_equal(m.entries, MANY + 1);
    while (kept_find(&m, app_of(2), false, room, &tried, &index)) {
        assert_true(kept_group_entry((const kept_group *)room, index, &e));
        assert_int_equal(e.head->app, app_of(2));
        seen++;
    }
    assert_int_equal(seen, 2);
    kept_close(&m);
    write_entries(&none, 0, ENTRIES);
}

/* No entry leads out of its group, whatever the group says. */
static void groups_within_bounds(void **state)
{
    (void)state;
    kept_map m;
    kept_entry e;
    kept_group *g = (kept_group *)room;
    uint32_t tried = 0;
    unsigned index;
    assert_true(kept_open(&m, folder, key));
    assert_true(kept_find(&m, app_of(0), false, room, &tried, &index));
    kept_close(&m);
    uint32_t at = g->at[index], count = g->count;
    assert_false(kept_group_entry(g, count, &e));
    static const uint32_t wrong[] = {0, 1, UINT32_MAX, UINT32_MAX / 8};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        g->at[index] = wrong[i];
        assert_false(kept_group_entry(g, index, &e));
    }
    g->at[index] = g->size / 8;
    assert_false(kept_group_entry(g, index, &e));
    g->at[index] = at;
    assert_true(kept_group_entry(g, index, &e));
    e.exits[0].to = count + 1;
    assert_false(kept_group_entry(g, index, &e));
}

/* The file of another key has another name; under this one's it is not taken either. */
static void belongs_to_its_key(void **state)
{
    (void)state;
    static const char other[] = "inlay test\nmodule /some/file\ncounters 3\n";
    char from[128], name[KEPT_NAME], to[128];
    kept_map m;
    file_path(from);
    kept_name(other, name);
    snprintf(to, sizeof to, "%s/%s", path, name);
    assert_string_not_equal(from, to);
    assert_int_equal(link(from, to), 0);
    assert_false(kept_open(&m, folder, other));
    assert_int_equal(unlink(to), 0);
    assert_true(kept_open(&m, folder, key));
    kept_close(&m);
}

static void own_and_private(void **state)
{
    (void)state;
    char file[128], aside[140];
    kept_map m, none = {0};
    file_path(file);
    snprintf(aside, sizeof aside, "%s.x", file);
    assert_int_equal(chmod(file, 0640), 0);
    assert_false(kept_open(&m, folder, key));
    assert_int_equal(chmod(file, 0600), 0);
    assert_int_equal(rename(file, aside), 0);
    assert_int_equal(symlink(aside, file), 0);
    assert_false(kept_open(&m, folder, key));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0); /* nor is a pipe waited for */
    assert_false(kept_open(&m, folder, key));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rename(aside, file), 0);
    assert_true(kept_open(&m, folder, key));
    kept_close(&m);
    assert_false(kept_write(&none, (const uint8_t *)room, 0, folder, key, (long)geteuid() + 1));
}

static size_t read_file(uint8_t *to)
{
    char file[128];
    file_path(file);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    size_t n = fread(to, 1, ROOM, f);
    fclose(f);
    return n;
}

static void put_file(const uint8_t *bytes, size_t n)
{
    char file[128];
    file_path(file);
    int fd = open(file, O_WRONLY); /* emptied first, it would be written to disk each time */
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(ftruncate(fd, (off_t)n), 0);
    close(fd);
}

/* How many are still found; what is found is right. */
static unsigned look(void)
{
    kept_map m;
    unsigned found = 0;
    if (!kept_open(&m, folder, key)) return 0;
    for (unsigned i = 0; i < ENTRIES; i++) found += is_there(&m, i);
    kept_close(&m);
    return found;
}

static void flipped_bits(void **state)
{
    (void)state;
    static uint8_t bytes[ROOM];
    size_t n = read_file(bytes);
    unsigned lost = 0;
    assert_int_equal(look(), ENTRIES);
    for (size_t at = 0; at < n; at++) {
        uint8_t bit = (uint8_t)(1 << at % 8);
        bytes[at] ^= bit;
        put_file(bytes, n);
        lost += look() < ENTRIES;
        bytes[at] ^= bit;
    }
    assert_true(lost > n / 3);
    put_file(bytes, n);
    assert_int_equal(look(), ENTRIES);
}

static void cut_short(void **state)
{
    (void)state;
    static uint8_t bytes[ROOM];
    size_t n = read_file(bytes);
    for (size_t size = 0; size < n; size += 1 + size / 64) {
        put_file(bytes, size);
        assert_int_equal(look(), 0);
    }
    put_file(bytes, n);
    assert_int_equal(look(), ENTRIES);
}

/* What is damaged is left out when the file is written anew, and no more than that group and what stands behind it. */
static void damage_is_not_handed_on(void **state)
{
    (void)state;
    static uint8_t bytes[ROOM];
    kept_file_head h;
    kept_map m, none = {0};
    write_entries(&none, 0, MANY);
    size_t n = read_file(bytes);
    memcpy(&h, bytes, sizeof h);
    bytes[h.slots_at - 20] ^= 4;
    put_file(bytes, n);
    assert_true(kept_open(&m, folder, key));
    write_entries(&m, MANY - 1, 1);
    kept_close(&m);
    assert_true(kept_open(&m, folder, key));
    assert_int_equal(m.entries, MANY / KEPT_TOGETHER * KEPT_TOGETHER + 1);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(is_there(&m, i), i < MANY / KEPT_TOGETHER * KEPT_TOGETHER || i == MANY - 1);
    kept_close(&m);
}

static void the_oldest_go(void **state)
{
    (void)state;
    char file[128], other[160];
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    file_path(file);
    snprintf(other, sizeof other, "%s/00000000000000000000000000000000", path);
    int fd = open(other, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(futimens(fd, old), 0);
    close(fd);
    kept_folder_trim(folder, 2 << 20);
    assert_int_equal(access(other, F_OK), 0);
    kept_folder_trim(folder, 1 << 20);
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(access(file, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(many_and_twice),
        cmocka_unit_test(groups_within_bounds),
        cmocka_unit_test(belongs_to_its_key),
        cmocka_unit_test(own_and_private),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(damage_is_not_handed_on),
        cmocka_unit_test(the_oldest_go),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
