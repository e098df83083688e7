#include "base/json_text.h"
#include "base/utf8.h"

#include <string.h>

void inl_json_text(FILE *f, const char *s, const char *coded)
{
    fputc('"', f);
    for (size_t n; *s; s += n ? n : 1) {
        unsigned char c = (unsigned char)*s;
        n = inl_utf8(s);
        if (!n) fputs("\\ufffd", f);
        else if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c == '\n') fputs("\\n", f);
        else if (c == '\t') fputs("\\t", f);
        else if (c < 0x20 || c == 0x7f || strchr(coded, c)) fprintf(f, "\\u%04x", c);
        else fwrite(s, 1, n, f);
    }
    fputc('"', f);
}
