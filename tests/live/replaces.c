/* A mutator that replaces and gives back, line by line, and answers each with "ok" or why not.
 *
 *     proc NAME TEXT | restore NAME            a procedure is the value of TEXT; is itself
 *     calls FROM NAME TEXT|- | back FROM NAME  calls of NAME in FROM are TEXT, or nothing; are themselves */
#include <inlay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inlay_process *process;

static inlay_proc *find(const char *name)
{
    inlay_proc *proc = NULL;
    for (inlay_image *i = inlay_process_image_first(process); i && !proc; i = inlay_image_next(i))
        proc = inlay_image_proc_named(i, name);
    return proc;
}

static inlay_expr parse(inlay_proc *p, const char *text)
{
    inlay_scope *names = inlay_scope_new(inlay_proc_image(p), inlay_proc_address(p));
    inlay_expr e = inlay_scope_parse(names, text);
    if (!e) fprintf(stderr, "%s\n", inlay_scope_error(names));
    return e;
}

/* `text` NULL: they are themselves again. */
static bool each_call(inlay_proc *from, const inlay_proc *of, const char *text)
{
    bool any = false, good = true;
    for (inlay_block *b = inlay_proc_block_first(from); b; b = inlay_block_next(b)) {
        inlay_insn *i = inlay_block_last(b);
        if (!inlay_insn_is_call(i) || inlay_insn_target(i) != inlay_proc_address(of)) continue;
        any = true;
        if (!text) good &= inlay_call_restore(i);
        else if (!strcmp(text, "-")) good &= inlay_call_replace(i, NULL);
        else good &= inlay_call_replace(i, parse(from, text));
    }
    return any && good;
}

static bool obey(char *line)
{
    char *word = strsep(&line, " "), *first = strsep(&line, " ");
    inlay_proc *p = find(first);
    bool good = false;
    if (!p) return false;
    if (!strcmp(word, "proc")) good = inlay_proc_replace(p, parse(p, line));
    if (!strcmp(word, "restore")) good = inlay_proc_restore(p);
    if (!strcmp(word, "calls") || !strcmp(word, "back")) {
        const inlay_proc *of = find(strsep(&line, " "));
        good = of && each_call(p, of, *word == 'b' ? NULL : line);
    }
    return good && inlay_process_commit(process) && !inlay_proc_refused(p);
}

int main(int argc, char **argv)
{
    static char line[1024];
    inlay_mutator(&argc, &argv);
    process = inlay_process_attach(atoi(argv[1]));
    if (!process) return fprintf(stderr, "%s\n", inlay_process_error()), 1;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        puts(obey(line) ? "ok" : "no");
        fflush(stdout);
    }
    return 0;
}
