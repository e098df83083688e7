/* Classic BPF, as the kernel runs it over the data of a system call (seccomp). */
#ifndef INL_RUN_BPF_H
#define INL_RUN_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* What the filter answers; *looks: it has read more than the call's number and architecture, so that the answer
 * may be another one the next time. A program that the kernel would not have taken kills. */
uint32_t run_bpf_run(const struct sock_filter *code, unsigned count, const struct seccomp_data *data, bool *looks);

#endif
