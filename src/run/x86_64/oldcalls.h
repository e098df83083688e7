/* int $0x80, which some kernels lack, and which some machines that they run on pass none of to them. */
#ifndef INL_RUN_X86_64_OLDCALLS_H
#define INL_RUN_X86_64_OLDCALLS_H

/* 0: the kernel takes it (it is asked for getpid, once; kernel.S). */
long run_old_calls_fault(void);

#endif
