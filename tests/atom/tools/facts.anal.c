#include <stdio.h>

void Answer(char *what, long n) { printf("%s: %ld\n", what, n); }
