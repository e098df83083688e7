#include <stdio.h>
#include <cmplrs/atom.anal.h>

static unsigned long called, begun, ended;

void Called() { called++; }
void Begins() { ThreadLockedAdd(&begun, 1); }
void Ends() { ThreadLockedAdd(&ended, 1); }

void Report(int objects, int known, int told)
{
    printf("%s, known in %s, told %d times, called %lu times, %lu threads began, %lu ended\n",
           objects > 1 ? "objects" : "one object", known == objects ? "each" : "some", told, called, begun, ended);
}
