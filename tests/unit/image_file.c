/* Opening: what headers say, the kinds of files, memory images, and what is refused. */
#include "image_sample.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <cmocka.h>

static void test_headers_as_readelf(void **state)
{
    (void)state;
    image *im = sample_open("/bin/ls");
    assert_string_equal(image_path(im), "/bin/ls");
    assert_string_equal(image_name(im), "ls");
    assert_int_equal(image_type(im), ET_DYN);
    assert_non_null(image_interp(im));

    char id[200] = "";
    FILE *f = sample_output("readelf -Wn /bin/ls | sed -n 's/.*Build ID: //p' | tr -d '\\n'");
    assert_non_null(fgets(id, sizeof id, f));
    pclose(f);
    assert_string_equal(image_build_id(im), id);

    const image_segment *s;
    size_t count = image_segments(im, &s), i = 0;
    unsigned long long offset, addr, file_size, mem_size;
    f = sample_output("readelf -Wl /bin/ls | awk '$1 == \"LOAD\" {print $2, $3, $5, $6}'");
    for (; fscanf(f, "%llx %llx %llx %llx", &offset, &addr, &file_size, &mem_size) == 4; i++) {
        assert_true(i < count);
        assert_int_equal(s[i].addr, addr);
        assert_int_equal(s[i].file_offset, offset);
        assert_int_equal(s[i].file_size, file_size);
        assert_int_equal(s[i].mem_size, mem_size);
    }
    pclose(f);
    assert_int_equal(i, count);
    image_close(im);
}

static void test_sections_and_bytes(void **state)
{
    (void)state;
    const char *path = sample_build("cc", "plain", "c", sample_c, "-O1");
    image *im = sample_open(path);
    const image_section *s;
    size_t count = image_sections(im, &s);
    bool text = false, bss = false;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        size_t have = image_bytes(im, s[i].addr, &bytes);
        if (strcmp(s[i].name, ".text") == 0) {
            text = true;
            assert_true(have >= s[i].size);
            FILE *f = fopen(path, "rb");
            uint8_t head[16];
            assert_int_equal(fseek(f, (long)s[i].file_offset, SEEK_SET), 0);
            assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
            fclose(f);
            assert_memory_equal(head, bytes, sizeof head);
        }
        if (strcmp(s[i].name, ".bss") == 0) {
            bss = true;
            assert_int_equal(image_bytes(im, s[i].addr + s[i].size - 1, &bytes), 0);
        }
    }
    assert_true(text && bss);
    const uint8_t *bytes;
    assert_int_equal(image_bytes(im, ~0ull, &bytes), 0);
    assert_true(image_phdr_addr(im) == sizeof(Elf64_Ehdr));
    image_close(im);
}

/* What lies in the file's header instead. */
static void test_sections_elsewhere(void **state)
{
    (void)state;
    const char *path = sample_build("cc", "plain", "c", sample_c, "-O1");
    const Elf64_Off elsewhere = 24;
    const image_section *s;
    FILE *f = fopen(path, "r+b");
    assert_int_equal(fseek(f, offsetof(Elf64_Ehdr, e_shoff), SEEK_SET), 0);
    assert_int_equal(fwrite(&elsewhere, sizeof elsewhere, 1, f), 1);
    fclose(f);
    image *im = sample_open(path);
    assert_int_equal(image_sections(im, &s), 0);
    image_close(im);
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *name, *flags;
        uint16_t type;
        bool interp;
    } kinds[] = {
        {"kind_pie", "-pie -fPIE", ET_DYN, true},           {"kind_exec", "-no-pie", ET_EXEC, true},
        {"kind_static", "-static -no-pie", ET_EXEC, false}, {"kind_static_pie", "-static-pie", ET_DYN, false},
        {"kind_library", "-shared -fPIC", ET_DYN, false},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        image *im = sample_open(sample_build("cc", kinds[i].name, "c", sample_c, kinds[i].flags));
        assert_int_equal(image_type(im), kinds[i].type);
        assert_int_equal(image_interp(im) != NULL, kinds[i].interp);
        const image_proc *p = image_proc_named(im, "collatz");
        assert_non_null(p);
        assert_ptr_equal(image_proc_at(im, p->addr + p->size - 1), p);
        if (kinds[i].type == ET_EXEC || kinds[i].interp)
            assert_string_equal(image_proc_at(im, image_entry(im))->name, "_start");
        uint64_t addr, size;
        assert_true(image_symbol(im, "exported_data", &addr, &size));
        assert_int_equal(size, sizeof(int));
        assert_true(image_symbol(im, "collatz", &addr, &size));
        assert_int_equal(addr, p->addr);
        assert_false(image_symbol(im, "no such symbol", &addr, &size));
        assert_null(image_proc_named(im, "exported_data"));
        image_close(im);
    }
}

static void test_vdso(void **state)
{
    (void)state;
    const Elf64_Ehdr *base = (const void *)getauxval(AT_SYSINFO_EHDR);
    if (!base) skip();
    image *im;
    assert_int_equal(image_open_memory(base, 8192, "[vdso]", &im, NULL), INL_OK);
    assert_string_equal(image_name(im), "[vdso]");
    assert_int_equal(image_machine(im), base->e_machine);
#ifdef __x86_64__
    const char *name = "__vdso_clock_gettime", *alias = "clock_gettime";
    const image_proc *p = image_proc_named(im, name);
    assert_non_null(p);
    assert_true(sample_has_name(p, alias));
    assert_ptr_equal(image_proc_named(im, alias), p);
    const image_unwind_range *r;
    assert_true(image_unwind_ranges(im, &r) > 0);
    const uint8_t *bytes;
    assert_true(image_bytes(im, p->addr, &bytes) >= p->size);
    assert_memory_equal(bytes, (const uint8_t *)base + p->addr, p->size);
#endif
    image_close(im);
}

/* Writes the file's first bytes with one of them changed, and tells how it is refused. */
static inl_status refusal(const char *path, size_t keep, size_t at, uint8_t value, inl_error *e)
{
    static uint8_t bytes[65536];
    FILE *f = fopen("/bin/ls", "rb");
    size_t have = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_true(have > 4096);
    bytes[at] = value;
    f = fopen(path, "wb");
    fwrite(bytes, 1, keep < have ? keep : have, f);
    fclose(f);
    image *im;
    inl_status st = image_open(path, &im, e);
    if (st == INL_OK) image_close(im);
    else assert_null(im);
    return st;
}

static void test_refused(void **state)
{
    (void)state;
    inl_error e;
    image *im;
    const char *path = sample_path("broken");
    assert_int_equal(image_open("/no/such/file", &im, &e), INL_ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "/no/such/file"));
    assert_int_equal(image_open("/tmp", &im, &e), INL_ERR_FORMAT);
    assert_int_equal(image_open("/dev/null", &im, &e), INL_ERR_FORMAT);
    assert_int_equal(image_open("/etc/passwd", &im, &e), INL_ERR_FORMAT);
    assert_non_null(strstr(e.text, "not an ELF file"));
    assert_int_equal(refusal(path, 0, 0, 0, &e), INL_ERR_FORMAT);
    assert_int_equal(refusal(path, 10, 0, 0x7f, &e), INL_ERR_FORMAT);
    assert_int_equal(refusal(path, 63, 0, 0x7f, &e), INL_ERR_FORMAT);
    assert_int_equal(refusal(path, 100, 0, 0x7f, &e), INL_ERR_FORMAT);
    assert_int_equal(refusal(path, 4096, EI_CLASS, ELFCLASS32, &e), INL_ERR_UNSUPPORTED);
    assert_int_equal(refusal(path, 4096, EI_DATA, ELFDATA2MSB, &e), INL_ERR_UNSUPPORTED);
    assert_int_equal(refusal(path, 4096, 16, ET_REL, &e), INL_ERR_UNSUPPORTED);
    assert_int_equal(refusal(path, 4096, 56, 0, &e), INL_ERR_FORMAT); /* e_phnum */
    assert_int_equal(refusal(path, 4096, 0, 0x7f, &e), INL_OK);       /* headers are enough */
    assert_int_equal(image_open_memory("", 0, "nothing", &im, &e), INL_ERR_FORMAT);
}

static void test_names(void **state)
{
    static const char *const names[][2] = {
        {"_ZN3foo3barEi", "foo::bar(int)"},
        {"_ZNSs6appendEPKc@GLIBCXX_3.4", "std::string::append(char const*)@GLIBCXX_3.4"},
        {"_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]"},
        /* Rust's older names, and the newer */
        {"_ZN29_$LT$a..B$u20$as$u20$c..D$GT$3cmp17h05af221e174051e9E", "<a::B as c::D>::cmp"},
        {"_RNvMNtNtCsgEmfK2I1SDS_4core3fmt2rtNtB2_8Argument3new", "<core::fmt::rt::Argument>::new"},
        {"_RINvMNtCsgEmfK2I1SDS_4core3stre18trim_start_matchesReECsgY6Mt91CT9J_14rustc_demangle",
         "<str>::trim_start_matches::<&str>"},
        {"_RNvYINtCs1234_1m1SAhj3_ENtB5_2Tr2go@plt", "<m::S<[u8; 3]> as m::Tr>::go@plt"},
        {"_D3std5stdio4File5closeMFNeZv", "std.stdio.File.close()"},
        {"_Dmain", "D main"},
        {"__heat_MOD_step@plt", "heat::step@plt"},
        /* none of them */
        {"main", NULL},
        {"", NULL},
        {"_", NULL},
        {"_Z", NULL},
        {"_ZN3foo", NULL},
        {"_Random", NULL},
        {"_RNv", NULL},
        {"_DYNAMIC", NULL},
        {"_D3std5", NULL},
        {"__heat_MOD_", NULL},
        {"___MODstep", NULL},
    };
    char out[100];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(image_demangle(names[i][0], out, sizeof out), names[i][names[i][1] != NULL]);
    assert_string_equal(image_demangle("_ZN3foo3barEi@VERSION", out, 9), "foo::bar");
    assert_string_equal(image_demangle("_ZN3foo3barEi@VERSION", out, 1), "");
    assert_ptr_equal(image_demangle(names[0][0], out, 0), names[0][0]);
    static const char bomb[] = /* pairs of pairs of pairs ...: each is twice as long */
        "_RINvC1a1fTuuETB7_B7_ETBb_Bb_ETBj_Bj_ETBr_Br_ETBz_Bz_ETBH_BH_ETBP_BP_ETBX_BX_ETB15_B15_ETB"
        "1d_B1d_ETB1n_B1n_ETB1x_B1x_ETB1H_B1H_ETB1R_B1R_ETB21_B21_ETB2b_B2b_ETB2l_B2l_ETB2v_B2v_ETB"
        "2F_B2F_ETB2P_B2P_ETB2Z_B2Z_ETB39_B39_ETB3j_B3j_ETB3t_B3t_ETB3D_B3D_ETB3N_B3N_ETB3X_B3X_ETB"
        "47_B47_ETB4h_B4h_ETB4r_B4r_ETB4B_B4B_ETB4L_B4L_ETB4V_B4V_ETB55_B55_ETB5f_B5f_ETB5p_B5p_ETB"
        "5z_B5z_ETB5J_B5J_ETB5T_B5T_ETB63_B63_EE";
    assert_string_equal(image_demangle(bomb, out, 18), "a::f::<((), ()), ");
    static const char twice[] = "HQgQi"; /* arrays of arrays of arrays, in D */
    char d_bomb[400] = "_D1d4workFHAyaAyaHQiQk";
    for (unsigned i = 0; i < 20; i++) strcat(d_bomb, twice); /* 80 MB */
    strcat(d_bomb, "Zv");
    assert_ptr_equal(image_demangle(d_bomb, out, sizeof out), d_bomb);
    strcpy(strstr(d_bomb, twice) + 2 * strlen(twice), "Zv");
    assert_non_null(strstr(image_demangle(d_bomb, out, sizeof out), "d.work(immutable(char)[][immutable(char)[]], "));
}

/* Forms that people write a name in, what their last component is, and a form that is not meant. */
static void test_written(void **state)
{
    static const char *const names[][4] = {
        {"main", "main", "main", "mai"},
        {"_ZN3foo3barEi", "foo::bar", "bar", "foo"},
        {"_ZN3foo3barEi", "foo::bar(int)", "bar", "bar(int)"},
        {"_ZN3foo3barEi", "fo?::*", "*", "foo::"},
        {"_Z6strretB5cxx11i", "strret", "strret", "strret()"},
        {"_Z6strretB5cxx11i", "strret[abi:cxx11](int)", "strret", "strret[abi:cxx12]"},
        {"_ZN1S4nameB5cxx11Ei", "S::name(int)", "name", "S::nam"},
        {"_ZN2ns4takeEPNS_1TEi", "ns::take(ns::T*, int)", "take", "ns::take(ns::T"},
        {"_Z2tfIiET_S0_", "tf<int>", "tf", "tf"},
        {"_Z2tfIiET_S0_", "int tf<int>(int)", "tf", "int"},
        {"_ZN1BIlE4convIiEET_S2_", "B<long>::conv<int>(int)", "conv", "B<long>::conv"},
        {"_ZN12_GLOBAL__N_14hid2Ei", "(anonymous namespace)::hid2", "hid2", "(anonymous namespace)"},
        {"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()", "", "main::{lambda"},
        {"_ZZN1f1gEiEN1L1mEv", "f::g(int)::L::m", "m", "f::g"},
        {"_ZN1AltERKS_", "A::operator<", "", "A::operator"},
        {"_ZN1AixEi", "A::operator[]", "", "A::operator"},
        {"_ZNK1AcvN1n1tEEv", "A::operator n::t() const", "t", "A::operator n"},
        {"_ZN2OpD1Ev", "Op::~Op", "Op", "Op::Op"},
    };
    char out[40];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!image_name_matches(names[i][0], names[i][1])) fail_msg("%s is not '%s'", names[i][0], names[i][1]);
        if (image_name_matches(names[i][0], names[i][3])) fail_msg("%s is '%s'", names[i][0], names[i][3]);
        assert_string_equal(image_name_last(names[i][1], out, sizeof out), names[i][2]);
    }
    assert_string_equal(image_name_last("a::longer_than_there_is_room_for()", out, 8), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_as_readelf),
        cmocka_unit_test(test_sections_and_bytes),
        cmocka_unit_test(test_sections_elsewhere),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_vdso),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
