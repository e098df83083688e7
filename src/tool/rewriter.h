/* What the files of the instrumentor share (see rewriter.c). */
#ifndef INL_TOOL_REWRITER_H
#define INL_TOOL_REWRITER_H

#include "tool/state.h"
#include "elf/elf.h"
#include "live/live.h"

enum { REWRITER_FINDERS = LIVE_HOOKS };
typedef struct rewriter_image { /* one of those that are rewritten together; the program is the first */
    char *path;                 /* the file, links followed */
    char *name;                 /* its name in the folder of --with-libs */
    char *out;
    image *im;
    module *m;
    uint64_t bias; /* assumed */
    cfg_program *cfg;
    elf_target file;  /* the target, where a file is written, */
    live_target live; /* or a process is changed */
    move_target *target;
    move_plan *plan;
    bool is_program; /* can be started, can carry the tool */
    bool written;
    uint64_t finders[REWRITER_FINDERS]; /* finders.h; 0: none */
} rewriter_image;

typedef struct rewriter {
    rewriter_image *images;
    size_t count;
    move_client client;
    double started, shown; /* when; the progress, for the last time */
    bool watched;          /* by a person: standard error is a terminal */
    rewriter_image *now;   /* being analysed or woven */
    bool made_folder;      /* of --with-libs */
    bool counts_stay;      /* where they are inserted: what would follow from flows is not known */
} rewriter;

/* --- rewriter.c --- */
void rewriter_progress(void *arg, const char *stage, uint64_t done, uint64_t of);
/* Ends the process with a message; nothing half-done is left. */
void rewriter_give_up(const rewriter *, const char *fmt, const char *what, const char *why) __attribute__((noreturn));
void rewriter_give_up_for(const rewriter *, const char *fmt, const char *path, const inl_error *)
    __attribute__((noreturn));
/* The images are opened and placed. Then the tool is shown them (tool_client_image), and what it inserts is planned and
 * committed to the targets. */
void rewriter_prepare(rewriter *);
void rewriter_plan(rewriter *);
/* The same in pieces: what the plans ask for (of all images; targets are set), and one image's plan. */
void rewriter_set_client(rewriter *);
inl_status rewriter_plan_image(rewriter *, rewriter_image *, inl_error *);
/* What goes with the code. The tool must be there (rewriter_needs_tool). */
void rewriter_pack(const rewriter *, elf_carry *);
bool rewriter_needs_tool(const rewriter *);
bool rewriter_watches_syscalls(void);
void rewriter_end_progress(const rewriter *);
double rewriter_now(void);
char *rewriter_must(char *); /* what is not NULL, or the end */
char *rewriter_join(const char *folder, const char *name);

/* --- analysed.c --- */
/* cfg_program_analyse, or what was kept of it. */
inl_status tool_analyse(image *, const cfg_options *, cfg_program **out, inl_error *e);

/* --- rewriter_images.c --- */
const char *rewriter_skip_folders(const char *path);
void rewriter_open_image(const rewriter *, rewriter_image *);
void rewriter_add_libraries(rewriter *);
void rewriter_place(rewriter *); /* where each one is taken to lie */
void rewriter_extent(const image *, uint64_t *low, uint64_t *high);
bool rewriter_make_folder(const char *folder); /* it was not there; NULL: none is wanted */
char *rewriter_program_out(const char *program);
void rewriter_check_outputs(const rewriter *);

/* --- rewriter_libs.c --- */
/* The shared libraries that a program loads when it starts, as the dynamic linker would find them, in the
 * order in which it would; the interpreter itself is not among them. Then those that `more` names (--lib), with what
 * they need, as far as it is found. */
typedef struct rewriter_library {
    char *path, *name; /* the file; the name that it is loaded by */
} rewriter_library;
inl_status rewriter_libraries(image *program, const tool_globs *more, rewriter_library **out, size_t *count,
                              inl_error *);

/* --- <isa>/folders.c --- */
enum { REWRITER_LEVELS = 4 };
void rewriter_hwcaps(const char *found[REWRITER_LEVELS]); /* NULL ends them */
extern const char rewriter_folders[];                     /* divided by colons */

/* --- rewriter_wrap.c --- */
/* Snippets that see addresses of running code see those of the original: inserts the translation. */
/* The original address of code whose address in the running program the node yields. */
const struct snippet *rewriter_original(inl_arena *, const struct snippet *);
bool rewriter_wrap(weave_run *, const cfg_program *, uint32_t proc, const inlay_image *);

/* --- rewriter_report.c --- */
void rewriter_note_refusal(uint64_t address, const char *what, const char *why);
/* False with a message when a file cannot be written. */
bool rewriter_reports(const rewriter *);
uint64_t rewriter_refused(const rewriter *); /* points */
void rewriter_summary(const rewriter *);

/* --- rewriter_bytes.c --- */
void rewriter_print_bytes(const rewriter_image *); /* in the report: where the text's bytes went */
void rewriter_say_left(const rewriter_image *);    /* to standard error: the largest procedures left alone, if any */
const char *rewriter_reason(const rewriter_image *, uint32_t proc);

/* --- json.c --- */
void tool_json_to(FILE *); /* what follows goes there; NULL: to the tool's result */

#endif
