/* Which way a procedure is called, as its debug information tells it: by the language, and what the compiler says of
 * its own doing. */
#include "image/units.h"

#include <dwarf.h>

/* Names that are Rust's own, in either of its manglings; a procedure with another is there for C. */
static bool is_rust_name(Dwarf_Die *proc)
{
    Dwarf_Attribute attr;
    const char *name = dwarf_attr_integrate(proc, DW_AT_linkage_name, &attr) ? dwarf_formstring(&attr) : NULL;
    return name && (!strncmp(name, "_ZN", 3) || !strncmp(name, "_R", 2));
}

/* Before 1.17 everything of Go's lay on the stack; the compiler says which way it takes. */
static bool in_registers(Dwarf_Die *unit)
{
    Dwarf_Attribute attr;
    const char *producer = dwarf_attr(unit, DW_AT_producer, &attr) ? dwarf_formstring(&attr) : NULL;
    const char *flags = producer ? strchr(producer, ';') : NULL;
    return flags && strstr(flags, " regabi");
}

image_convention image_convention_of(Dwarf_Die *proc)
{
    Dwarf_Die unit;
    uint64_t said;
    if (dwarf_tag(proc) != DW_TAG_subprogram || !dwarf_diecu(proc, &unit, NULL, NULL)) return IMAGE_CALLS_C;
    if (image_number_of(proc, DW_AT_calling_convention, &said) && said == DW_CC_nocall) return IMAGE_CALLS_UNKNOWN;
    switch (dwarf_srclang(&unit)) {
    case DW_LANG_Rust: return is_rust_name(proc) ? IMAGE_CALLS_RUST : IMAGE_CALLS_C;
    case DW_LANG_Go: return in_registers(&unit) ? IMAGE_CALLS_GO : IMAGE_CALLS_UNKNOWN;
    default: return IMAGE_CALLS_C;
    }
}

bool image_may_drop_parameters(image *im, uint64_t pc)
{
    Dwarf_Attribute attr;
    image_lines *l = image_trees(im);
    Dwarf_Die *unit = l ? image_tree_at(l, pc) : NULL;
    const char *producer = unit && dwarf_attr(unit, DW_AT_producer, &attr) ? dwarf_formstring(&attr) : NULL;
    return producer && (strstr(producer, "clang") || strstr(producer, "LLVM") || strstr(producer, "rustc"));
}

static bool is_of(Dwarf_Die *die, int language)
{
    Dwarf_Die unit;
    return dwarf_diecu(die, &unit, NULL, NULL) && dwarf_srclang(&unit) == language;
}

bool image_is_of_go(Dwarf_Die *die) { return is_of(die, DW_LANG_Go); }
bool image_is_of_rust(Dwarf_Die *die) { return is_of(die, DW_LANG_Rust); }

bool image_is_result(Dwarf_Die *parameter)
{
    Dwarf_Attribute attr;
    bool is = false;
    return dwarf_attr_integrate(parameter, DW_AT_variable_parameter, &attr) && !dwarf_formflag(&attr, &is) && is;
}
