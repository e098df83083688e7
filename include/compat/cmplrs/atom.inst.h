#include <instrument.h>
