/* Opens libraries as the lines of its standard input say, in its own namespace or in new ones, and has the C library
 * open some: WHAT WHICH NUMBER [PATH]. Dynamic or static. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <iconv.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *opened[4];
static char path[200];

static int get(void)
{
    char line[64];
    return fgets(line, sizeof line, stdin) ? atoi(line) : -1;
}

static int call(int which, const char *name, int n)
{
    int (*f)(int, int (*)(void)) = opened[which] ? (int (*)(int, int (*)(void)))dlsym(opened[which], name) : NULL;
    return f ? f(n, get) : -1;
}

static int close_it(int which)
{
    int status = opened[which] ? dlclose(opened[which]) : -1;
    opened[which] = NULL;
    return status;
}

/* Users, groups and addresses are looked up by modules that nsswitch.conf names. */
static int names(int n)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV},
                    *found = NULL;
    int sum = 0;
    for (int i = 0; i < n; i++) {
        const struct passwd *p = getpwnam("daemon");
        sum += p ? (int)strlen(p->pw_dir) : 0;
        sum += getpwnam("nobody-of-this-name") ? 1000 : 0;
        if (getaddrinfo("localhost", "80", &hints, &found) == 0) {
            sum += (int)ntohl(((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr) & 255;
            freeaddrinfo(found);
        }
    }
    return sum;
}

static int characters(int n)
{
    char in[] = "h\xc3\xa9llo", out[64];
    iconv_t c = iconv_open("UTF-16LE", "UTF-8");
    iconv_t d = iconv_open("SHIFT_JIS", "EUC-JP");
    int sum = (d != (iconv_t)-1) * 100;
    for (int i = 0; i < n && c != (iconv_t)-1; i++) {
        char *from = in, *to = out;
        size_t left = sizeof in - 1, room = sizeof out;
        iconv(c, &from, &left, &to, &room);
        sum += (int)(sizeof out - room);
    }
    if (c != (iconv_t)-1) iconv_close(c);
    if (d != (iconv_t)-1) iconv_close(d);
    return sum;
}

static int obey(const char *what, int which, int n)
{
    char name[32];
    if (!strcmp(what, "open")) return (opened[which] = dlopen(path, n ? RTLD_NOW : RTLD_LAZY)) != NULL;
    if (!strcmp(what, "space")) return (opened[which] = dlmopen(LM_ID_NEWLM, path, n ? RTLD_NOW : RTLD_LAZY)) != NULL;
    if (!strcmp(what, "close")) return close_it(which);
    if (!strcmp(what, "names")) return names(n);
    if (!strcmp(what, "iconv")) return characters(n);
    snprintf(name, sizeof name, "plugin_%s", what);
    return call(which, name, n);
}

int main(void)
{
    char line[300], what[16];
    int which, n;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, "%15s %d %d %199s", what, &which, &n, path) >= 3)
            printf("%s %d\n", what, obey(what, which, n));
    return 6;
}
