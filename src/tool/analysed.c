/* Analyses of images for those who plan with them: taken from where they were kept (cfg/kept.h), or made and kept.
 * Within a program's own process none is: what is analysed there is seldom much. */
#include "base/log.h"
#include "cfg/kept.h"
#include "run/kept_folder.h"
#include "tool/ahead.h"
#include "tool/rewriter.h"
#include "tool/state.h"

#include <stdlib.h>
#include <unistd.h>

bool tool_keeps(void)
{
    const tool_options *o = &tool_now->options;
    const char *folder = getenv("INLAY_CACHE");
    return (o->cache || (folder && *folder)) && !o->no_cache;
}

static cfg_program *take(int folder, const char *name, image *im, const char *key)
{
    size_t size;
    uint8_t *bytes = kept_folder_take(folder, name, &size);
    cfg_program *p = bytes ? cfg_kept_read(im, key, bytes, size) : NULL;
    if (bytes && !p)
        inl_log(INL_LOG_CACHE, "the analysis of %s that was kept is not used: it is damaged", image_path(im));
    if (p) inl_log(INL_LOG_CACHE, "the analysis of %s is taken from the file %s", image_path(im), name);
    free(bytes);
    return p;
}

static void keep(int folder, const char *name, const cfg_program *p, const char *key)
{
    inl_bytes bytes = {0};
    bool done = cfg_kept_write(p, key, &bytes) && kept_folder_put(folder, name, bytes.data, bytes.size);
    inl_log(INL_LOG_CACHE, "the analysis of %s is %skept in the file %s", image_path(p->image), done ? "" : "not ",
            name);
    inl_bytes_free(&bytes);
}

inl_status tool_analyse(image *im, const cfg_options *options, cfg_program **out, inl_error *e)
{
    char key[CFG_KEPT_KEY], name[KEPT_NAME];
    bool keeps = tool_handoff_data.role == TOOL_INSTRUMENTOR && tool_keeps();
    int folder = keeps ? kept_folder_open() : -1;
    bool known = folder >= 0 && cfg_kept_key(im, key);
    if (known) kept_name(key, name);
    *out = known ? take(folder, name, im, key) : tool_ahead_take(im);
    bool taken = *out != NULL;
    inl_status s = taken ? INL_OK : cfg_program_analyse(im, options, out, e);
    if (known && !taken && s == INL_OK) keep(folder, name, *out, key);
    if (folder >= 0) close(folder);
    return s;
}
