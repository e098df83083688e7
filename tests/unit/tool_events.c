/* Lists of events, translated by what a made-up folder of the kernel's devices tells, and a made-up library. */
#include "cli/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char devices[] = "/tmp/inlay-events-XXXXXX", out[4096], why[512];

bool events_of_library(const char *word, events_code *code, char reason[512])
{
    *code = (events_code){.type = 4, .config = {0x99}};
    if (!strcmp(word, "PAPI_L1_DCM") || !strcmp(word, "SOME:MASK")) return true;
    snprintf(reason, 512, "the library says no");
    return false;
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", devices, name);
    for (char *at = path + strlen(devices) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static int make_devices(void **state)
{
    (void)state;
    if (!mkdtemp(devices)) return -1;
    put("cpu/type", "4");
    put("cpu/format/event", "config:0-7,32-35");
    put("cpu/format/umask", "config:8-15");
    put("cpu/format/edge", "config:18");
    put("cpu/format/far", "config1:0-63");
    put("cpu/format/odd", "elsewhere:0-3");
    put("cpu/events/loads", "event=0xcd,umask=0x1,far=3");
    put("cpu/events/asks", "event=0x1,umask=?");
    put("other/type", "77");
    put("other/events/loads", "config=0x5");
    put("other/events/beats", "config=0x6,config2=7");
    put("uncore/type", "30");
    put("uncore/cpumask", "0");
    put("uncore/format/event", "config:0-7");
    return 0;
}

static int drop_devices(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", devices);
    return system(command);
}

static const char *made(const char *list)
{
    why[0] = 0;
    return events_translate(list, devices, out, sizeof out, why) ? out : NULL;
}

static void terms_go_where_formats_say(void **state)
{
    (void)state;
    assert_string_equal(made("cpu/event=0xfcd,umask=2/"), "cpu/event=0xfcd+umask=2/=4/64424510157/0/0");
    assert_string_equal(made("cpu/edge/"), "cpu/edge/=4/262144/0/0");
    assert_string_equal(made("cpu/far=0xffffffffffffffff/uk"),
                        "cpu/far=0xffffffffffffffff/uk=4/0/18446744073709551615/0:uk");
    assert_string_equal(made("cpu/config=3,config1=4,config2=5/"), "cpu/config=3+config1=4+config2=5/=4/3/4/5");
}

static void named_events_are_terms(void **state)
{
    (void)state;
    assert_string_equal(made("cpu/loads/"), "cpu/loads/=4/461/3/0");
    assert_string_equal(made("cpu/loads,edge/"), "cpu/loads+edge/=4/262605/3/0");
    assert_string_equal(made("loads:u"), "loads:u=4/461/3/0:u"); /* a processor's before others */
    assert_string_equal(made("beats"), "beats=77/6/0/7");
}

static void lists_stay_lists(void **state)
{
    (void)state;
    assert_string_equal(made("cycles:u,{loads,page-faults},r1b2,x=7/8"),
                        "cycles:u,{loads=4/461/3/0,page-faults},r1b2,x=7/8");
    assert_string_equal(made("page-faults,"), "page-faults,"); /* the tool says what is wrong */
}

static void libraries_are_asked_last(void **state)
{
    (void)state;
    assert_string_equal(made("SOME:MASK"), "SOME:MASK=4/153/0/0");
    assert_string_equal(made("PAPI_L1_DCM:k"), "PAPI_L1_DCM:k=4/153/0/0:k");
    assert_string_equal(made("PAPI_TOT_CYC"), "PAPI_TOT_CYC=0/0"); /* without the library */
    assert_string_equal(made("PAPI_BR_MSP:u"), "PAPI_BR_MSP=0/5:u");
    assert_null(made("PAPI_NOTHING"));
    assert_non_null(strstr(why, "the library says no"));
}

static void what_is_wrong_is_said(void **state)
{
    static const char *const wrong[][2] = {{"cpu/event=0x1fff/", "too large"},
                                           {"cpu/nothing=1/", "no such term"},
                                           {"cpu/nothing/", "no such term"},
                                           {"cpu/event=x/", "no number"},
                                           {"cpu/asks/", "wants to be told"},
                                           {"cpu/odd=1/", "format"},
                                           {"uncore/event=1/", "whole machine"},
                                           {"nowhere/event=1/", "no such device"},
                                           {"../cpu/event=1/", ""},
                                           {"cpu/event=1/z", ""},
                                           {"cpu//", "no term"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(made(wrong[i][0]));
        assert_non_null(strstr(why, wrong[i][1]));
        assert_true(strlen(why) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_go_where_formats_say), cmocka_unit_test(named_events_are_terms),
        cmocka_unit_test(lists_stay_lists),           cmocka_unit_test(libraries_are_asked_last),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, make_devices, drop_devices);
}
