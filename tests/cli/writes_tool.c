/* Writes to the program's memory from callbacks that are shown code: to a variable, and to the code itself. */
#include <inlay.h>

#include <string.h>

static void each_image(inlay_image *image, void *arg)
{
    int nine = 9;
    uint64_t at = inlay_image_is_main(image) ? inlay_image_symbol(image, "setting") : 0;
    (void)arg;
    if (at) inlay_memory_write(at, &nine, sizeof nine);
    inlay_memory_write(16, &nine, sizeof nine); /* nothing is there */
}

/* The constant 1 becomes 2. */
static void each_block(inlay_block *block, void *arg)
{
    static const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3}, two = 2;
    unsigned char here[sizeof code];
    uint64_t at = inlay_block_address(block);
    (void)arg;
    if (inlay_memory_read(here, at, sizeof here) == sizeof here && !memcmp(here, code, sizeof code))
        inlay_memory_write(at + 1, &two, 1);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "writes to what it is shown");
    inlay_on_image_load(each_image, NULL);
    inlay_on_block(each_block, NULL);
    return inlay_start();
}
