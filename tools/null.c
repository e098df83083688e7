/* null: runs a program from the code cache and changes nothing. What the engine itself costs. */
#include <inlay.h>

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "runs the program under the engine, without any instrumentation");
    return inlay_start();
}
