/* The instruction sets that programs are analysed for, and what holds for all of them. */
#include "cfg/work.h"

#include <string.h>

const cfg_machine *cfg_machine_for(const isa *a)
{
    static const cfg_machine *const known[] = {&cfg_machine_x86_64, &cfg_machine_aarch64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i]->isa == a) return known[i];
    return NULL;
}

bool cfg_means(const cfg_machine *m, const char *mnemonic, cfg_sem sem)
{
    for (const char *const *name = m->sems[sem]; name && *name; name++)
        if (strcmp(*name, mnemonic) == 0) return true;
    return false;
}

/* clang-format off */
const char *const cfg_no_return[] = {
    "_Exit", "_Unwind_Resume", "_ZNSt3__120__throw_system_errorEiPKc",
    "_ZNSt3__121__throw_runtime_errorEPKc", "_ZNSt3__122__libcpp_verbose_abortEPKcz",
    "_ZSt10unexpectedv", "_ZSt16__throw_bad_castv", "_ZSt17__throw_bad_allocv",
    "_ZSt18__throw_bad_typeidv", "_ZSt19__throw_ios_failurePKc", "_ZSt19__throw_ios_failurePKci",
    "_ZSt19__throw_logic_errorPKc", "_ZSt19__throw_range_errorPKc",
    "_ZSt19__throw_regex_errorNSt15regex_constants10error_typeE", "_ZSt20__throw_domain_errorPKc",
    "_ZSt20__throw_future_errori", "_ZSt20__throw_length_errorPKc", "_ZSt20__throw_out_of_rangePKc",
    "_ZSt20__throw_system_errori", "_ZSt21__glibcxx_assert_failPKciS0_S0_",
    "_ZSt21__throw_bad_exceptionv", "_ZSt21__throw_runtime_errorPKc", "_ZSt22__throw_overflow_errorPKc",
    "_ZSt23__throw_underflow_errorPKc", "_ZSt24__throw_invalid_argumentPKc",
    "_ZSt24__throw_out_of_range_fmtPKcz", "_ZSt25__throw_bad_function_callv",
    "_ZSt28__throw_bad_array_new_lengthv", "_ZSt9terminatev", "__assert", "__assert_fail",
    "__assert_perror_fail", "__chk_fail", "__cxa_bad_cast", "__cxa_bad_typeid", "__cxa_call_terminate",
    "__cxa_call_unexpected", "__cxa_pure_virtual", "__cxa_rethrow", "__cxa_throw",
    "__cxa_throw_bad_array_length", "__cxa_throw_bad_array_new_length", "__fortify_fail",
    "__longjmp_chk", "__stack_chk_fail", "_exit", "_longjmp", "abort", "err", "errx", "exit",
    "g_assertion_message", "g_assertion_message_expr", "log_assert_failed",
    "log_assert_failed_unreachable", "longjmp", "pthread_exit", "quick_exit", "siglongjmp", "thrd_exit",
    "verr", "verrx", NULL};
/* clang-format on */

const char *const cfg_call_counters[] = {"__fentry__", "__mcount", "_mcount", "mcount", NULL};
