/* Translations that are kept from run to run: where, of which tools, and under which key.
 *
 * The folder is that of run/kept_folder.h. Whatever is amiss with it, the program runs all the same, and is translated.
 *
 * A tool whose callbacks see code is asked whether they may be left out: inlay_on_kept_block is its promise. */
#include "tool/glibc.h"
#include "tool/kept.h"
#include "tool/state.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/sys.h"
#include "image/file.h"
#include "jit/kept_file.h"
#include "version.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEY_ROOM = 2048 };

/* --- the key --- */

static void put_build_id(char *out, size_t size)
{
    const Elf64_Phdr *ph = (const Elf64_Phdr *)((uintptr_t)&__ehdr_start + __ehdr_start.e_phoff);
    uint8_t id[64];
    *out = 0;
    for (unsigned i = 0; i < __ehdr_start.e_phnum && !*out; i++) {
        if (ph[i].p_type != PT_NOTE) continue;
        size_t n = image_find_build_id((const uint8_t *)&__ehdr_start + ph[i].p_vaddr, ph[i].p_filesz, id);
        for (size_t k = 0; k < n && 2 * k + 3 < size; k++) snprintf(out + 2 * k, 3, "%02x", id[k]);
    }
}

static uint64_t hashed(uint64_t hash, const char *text) { return inl_hash(inl_hash_text(hash, text), "\xff", 1); }

/* The tool's own options: those that were given, in their order. */
static uint64_t hash_options(void)
{
    uint64_t hash = INL_HASH_BEGIN;
    for (size_t i = 0; i < tool_now->kept.options.count; i++) hash = hashed(hash, tool_now->kept.options.items[i]);
    return hash;
}

/* Both what the linker has called the tool and which file it is: it is not to be enough that somebody has patched one.
 */
static char *make_key(void)
{
    char id[130];
    struct stat st;
    char *key = malloc(KEY_ROOM);
    if (!key || fstat(tool_handoff_data.fds.tool, &st) != 0) {
        free(key);
        return NULL;
    }
    put_build_id(id, sizeof id);
    snprintf(key, KEY_ROOM,
             "inlay %s\ntool build-id %s\ntool file %llx:%llx size %llx changed %llx.%lx %llx.%lx\n"
             "options %016llx\ncounters at %016llx\n",
             INLAY_VERSION, id, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
             (unsigned long long)st.st_size, (unsigned long long)st.st_mtim.tv_sec, (unsigned long)st.st_mtim.tv_nsec,
             (unsigned long long)st.st_ctim.tv_sec, (unsigned long)st.st_ctim.tv_nsec,
             (unsigned long long)hash_options(), (unsigned long long)tool_now->kept.counters_hash);
    return key;
}

/* --- what the engine asks --- */

static bool allowed(void *arg)
{
    callback **on = tool_now->callbacks;
    const inlay_process *p = tool_now->process;
    (void)arg;
    return !tool_now->kept.changed && !on[ON_PROC] && !on[ON_INSN] && (!on[ON_BLOCK] || tool_now->kept.promised) &&
           !p->proc_points && !p->code_inserted;
}

static void taken(void *arg, uint64_t block, bool head)
{
    (void)arg;
    tool_here.holds_lock = true;
    TOOL_CALL(ON_KEPT_BLOCK, void (*)(uint64_t, bool, void *), block, head);
    tool_here.holds_lock = false;
}

static bool is_wanted(void)
{
    const tool_options *o = &tool_now->options;
    bool alone = !o->dump && !o->debug_info && !o->gdb;
    return tool_keeps() && alone && !tool_filter_images() && !tool_filter_procs();
}

void tool_kept_fill(jit_keeping *k)
{
    int found = is_wanted() && allowed(NULL) ? kept_folder_open() : -1, folder = found < 0 ? -1 : resident_hide(found);
    char *key = folder < 0 ? NULL : make_key();
    *k = (jit_keeping){.key = key,
                       .folder = folder,
                       .counters = tool_now->next_counter,
                       .banked = tool_now->next_banked,
                       .allowed = allowed,
                       .taken = tool_now->callbacks[ON_KEPT_BLOCK] ? taken : NULL};
}
