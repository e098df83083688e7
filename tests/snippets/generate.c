/* generate FOLDER COUNT SEED: random snippets, and sources of the program that says what they must do. */
#include "snippet_gen.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: generate FOLDER COUNT SEED\n");
        return 2;
    }
    gen_write(argv[1], (unsigned)strtoul(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10));
    return 0;
}
