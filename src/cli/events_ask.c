/* inlay-events: what libpfm4 and PAPI call an event, as perf_event_open(2) wants it. A program of its own, since the
 * command is static, and these libraries are loaded where they are.
 *
 *     $ inlay-events PAPI_L1_DCM      ->  "code TYPE CONFIG CONFIG1 CONFIG2 [ukh]", or "no TEXT" */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef INLAY_PAPI
#include <papi.h>
#endif

/* libpfm4's: what pfm_get_os_event_encoding fills with PERF_EVENT_EXT. */
typedef struct pfm_request {
    struct perf_event_attr *attr;
    char **whole;
    size_t size;
    int index, processor, flags;
} pfm_request;
enum { PFM_BY_PERF_EXT = 2, PFM_USER_AND_KERNEL = 1 << 0 | 1 << 3 };

static void *library(const char *const *names, const char *package)
{
    void *found = NULL;
    for (; *names && !found; names++) found = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);
    if (!found) printf("no it is none of the kernel's, and %s is not installed\n", package);
    return found;
}

static bool encode(const char *name)
{
    static const char *const names[] = {"libpfm.so.4", "libpfm.so", NULL};
    void *pfm = library(names, "libpfm4, which knows more,");
    if (!pfm) return false;
    int (*start)(void) = (int (*)(void))dlsym(pfm, "pfm_initialize");
    int (*get)(const char *, int, int,
               void *) = (int (*)(const char *, int, int, void *))dlsym(pfm, "pfm_get_os_event_encoding");
    const char *(*text)(int) = (const char *(*)(int))dlsym(pfm, "pfm_strerror");
    struct perf_event_attr a = {.size = sizeof a};
    char *whole = NULL;
    pfm_request r = {.attr = &a, .whole = &whole, .size = sizeof r};
    int bad = start && get ? start() : -1;
    if (!bad) bad = get(name, PFM_USER_AND_KERNEL, PFM_BY_PERF_EXT, &r);
    if (bad) {
        printf("no libpfm4 says of it: %s (its events are those of the processors that it knows)\n",
               text ? text(bad) : "?");
        return false;
    }
    bool all = a.exclude_user == a.exclude_kernel;
    printf("code %u %llu %llu %llu %s\n", a.type, (unsigned long long)a.config, (unsigned long long)a.config1,
           (unsigned long long)a.config2,
           all              ? ""
           : a.exclude_user ? "k"
                            : "u");
    return true;
}

#ifdef INLAY_PAPI
/* Of a preset, the one event of the processor's that it is. */
static bool preset(const char *name, char *native, size_t size)
{
    static const char *const names[] = {"libpapi.so", "libpapi.so.7.1", "libpapi.so.7.0", "libpapi.so.6.0", NULL};
    static PAPI_event_info_t info;
    void *papi = library(names, "PAPI");
    int code;
    if (!papi) return false;
    int (*start)(int) = (int (*)(int))dlsym(papi, "PAPI_library_init");
    int (*find)(const char *, int *) = (int (*)(const char *, int *))dlsym(papi, "PAPI_event_name_to_code");
    int (*tell)(int, PAPI_event_info_t *) = (int (*)(int, PAPI_event_info_t *))dlsym(papi, "PAPI_get_event_info");
    if (!start || !find || !tell || start(PAPI_VER_CURRENT) != PAPI_VER_CURRENT) {
        printf("no the PAPI that is installed is of another version than this was built for\n");
    } else if (find(name, &code) != PAPI_OK || tell(code, &info) != PAPI_OK) {
        printf("no PAPI does not know it\n");
    } else if (info.count == 0) {
        printf("no PAPI has no such event on this machine (virtual machines often have no counters)\n");
    } else if (info.count > 1) {
        printf("no on this processor PAPI computes it from %u events, which can be asked for:", info.count);
        for (unsigned i = 0; i < info.count; i++) printf(" %s", info.name[i]);
        printf(" (%s)\n", info.derived);
    } else {
        return snprintf(native, size, "%s", info.name[0]) < (int)size;
    }
    return false;
}
#else
static bool preset(const char *name, char *native, size_t size)
{
    (void)name, (void)native, (void)size;
    printf("no this Inlay was built without PAPI's headers\n");
    return false;
}
#endif

int main(int argc, char **argv)
{
    char native[1024];
    if (argc != 2) return 2;
    if (strncmp(argv[1], "PAPI_", 5) != 0) return !encode(argv[1]);
    return !preset(argv[1], native, sizeof native) || !encode(native);
}
