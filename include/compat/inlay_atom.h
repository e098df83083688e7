/* What `inlay atom` generates for a tool, and where the tool begins. Of no interest to tools' authors. */
#ifndef INLAY_COMPAT_INLAY_ATOM_H
#define INLAY_COMPAT_INLAY_ATOM_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct atom_routine {
    const char *name;
    void (*code)(void);
} atom_routine;

typedef struct atom_tool {
    const char *name, *analysis; /* of the tool, and the analysis file */
    const char *program;         /* to be run when the tool is; 0: named on the command line */
    const char *const *args;     /* for the instrumentation file; 0 at the end */
    unsigned (*all)(int, char **);
    void (*init)(int, char **);
    int (*instrument)(int, char **, struct atom_obj *);
    void (*fini)(void);
    const atom_routine *routines; /* of the analysis file; a name of 0 at the end */
} atom_tool;

int atom_main(int argc, char **argv, const atom_tool *);

#ifdef __cplusplus
}
#endif

#endif
