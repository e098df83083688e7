/* Where the dynamic linker looks for libraries on this architecture. */
#include "tool/rewriter.h"

/* No subfolders for some processors alone: glibc has none for it. */
void rewriter_hwcaps(const char *found[REWRITER_LEVELS]) { found[0] = NULL; }

const char rewriter_folders[] = "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";
