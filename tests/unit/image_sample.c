#include "image_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

const char sample_c[] = "#include <math.h>\n"
                        "#include <stdio.h>\n"
                        "#include <stdlib.h>\n"
                        "#include <string.h>\n"
                        "int exported_data = 4;\n"
                        "static int half(int n) {\n"
                        "    return n / 2;\n"
                        "}\n"
                        "__attribute__((noinline))\n"
                        "int collatz(int n) {\n"
                        "    int steps = 0;\n"
                        "    while (n != 1) {\n"
                        "        n = n % 2 ? 3 * n + 1 : half(n);\n"
                        "        steps++;\n"
                        "    }\n"
                        "    return steps;\n"
                        "}\n"
                        "int (*volatile print)(const char *) = puts;\n"
                        "int main(int argc, char **argv) {\n"
                        "    char *text = strdup(argv[0]);\n"
                        "    printf(\"%d %d\\n\", collatz(argc + 26), (int)strlen(text));\n"
                        "    print(text);\n"
                        "    free(text);\n"
                        "    return exported_data - 4;\n"
                        "}\n";

static char folder[64];

static void remove_folder(void) { sample_shell("rm -rf '%s'", folder); }

const char *sample_path(const char *name)
{
    static char paths[16][256];
    static unsigned next;
    if (!folder[0]) {
        strcpy(folder, "/tmp/inlay-image-XXXXXX");
        assert_non_null(mkdtemp(folder));
        atexit(remove_folder);
    }
    char *out = paths[next++ % 16];
    snprintf(out, sizeof paths[0], "%s/%s", folder, name);
    return out;
}

static void command(char *out, size_t size, const char *fmt, va_list args)
{
    int length = vsnprintf(out, size, fmt, args);
    assert_true(length > 0 && (size_t)length < size);
}

bool sample_shell(const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    command(text, sizeof text, fmt, args);
    va_end(args);
    return system(text) == 0;
}

FILE *sample_output(const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    command(text, sizeof text, fmt, args);
    va_end(args);
    FILE *out = popen(text, "r");
    assert_non_null(out);
    return out;
}

const char *sample_build(const char *compiler, const char *name, const char *suffix, const char *source,
                         const char *flags)
{
    char file[64];
    snprintf(file, sizeof file, "%s.%s", name, suffix);
    const char *from = sample_path(file), *to = sample_path(name);
    FILE *f = fopen(from, "w");
    assert_non_null(f);
    fputs(source, f);
    fclose(f);
    if (!sample_shell("%s -o '%s' '%s' %s", compiler, to, from, flags))
        fail_msg("%s %s does not compile", compiler, flags);
    return to;
}

image *sample_open(const char *path)
{
    image *im;
    inl_error e;
    if (image_open(path, &im, &e) != INL_OK) fail_msg("%s", e.text);
    return im;
}

bool sample_has_name(const image_proc *p, const char *name)
{
    if (strcmp(p->name, name) == 0) return true;
    for (const char *const *a = p->aliases; a && *a; a++)
        if (strcmp(*a, name) == 0) return true;
    return false;
}
