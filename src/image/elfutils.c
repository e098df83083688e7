/* What elfutils needs of whoever is linked with it. */
#include "image/file.h"

#include <libelf.h>
#include <search.h>

bool image_elfutils_ready(void) { return elf_version(EV_CURRENT) != EV_NONE; }

#ifdef INLAY_SEARCH_TREES
/* The archives of elfutils 0.192 (Debian 13) lack their own search trees, which are the C library's behind a lock that
 * elfutils as distributions build it does not take. Nothing else there looks into such a tree. */
typedef struct tree {
    void *root;
} tree;
typedef int (*comparison)(const void *, const void *);

void eu_search_tree_init(tree *in);
void eu_search_tree_fini(tree *in, void (*free_node)(void *));
void *eu_tsearch(const void *key, tree *in, comparison c);
void *eu_tfind(const void *key, tree *in, comparison c);
void *eu_tdelete(const void *key, tree *in, comparison c);
void eu_tdestroy(tree *in, void (*free_node)(void *));

void eu_search_tree_init(tree *in) { in->root = NULL; }
void *eu_tsearch(const void *key, tree *in, comparison c) { return tsearch(key, &in->root, c); }
void *eu_tfind(const void *key, tree *in, comparison c) { return tfind(key, &in->root, c); }
void *eu_tdelete(const void *key, tree *in, comparison c) { return tdelete(key, &in->root, c); }

void eu_tdestroy(tree *in, void (*free_node)(void *))
{
    tdestroy(in->root, free_node);
    in->root = NULL;
}

void eu_search_tree_fini(tree *in, void (*free_node)(void *)) { eu_tdestroy(in, free_node); }
#endif
