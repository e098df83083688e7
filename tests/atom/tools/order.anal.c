#include <stdio.h>
#include <cmplrs/atom.anal.h>

static first;
void *malloc(unsigned long n) { printf("own malloc called\n"); return 0; } /* never by the C library */
helper(k) { return k + 1; }
brk(k) { return helper(k); }

First() { first = 1; printf("program begins\n"); }
Say(text) char *text; { printf("%s%s\n", first ? "" : "too early: ", text); }
Number(int k, long l, char *text) { printf("%d %ld %s\n", brk(k), l, text); }
Sum(int *four, long *two) { printf("%d %ld\n", four[0] + four[1] + four[2] + four[3], two[0] + two[1]); }
