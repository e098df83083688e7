/* Loaded, called and unloaded by loading.c. */
static int calls;
__attribute__((constructor)) static void begin(void) { calls = 100; }
int library_call(int n) { return n > 0 ? library_call(n - 1) + 1 : ++calls; }
