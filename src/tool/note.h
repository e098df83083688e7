/* The mark by which the inlay command knows a tool before it executes it: an ELF note, owner "Inlay", type 1, whose
 * content is the version of what passes between the two: options that the command puts in. */
#ifndef INL_TOOL_NOTE_H
#define INL_TOOL_NOTE_H

#define TOOL_NOTE_VERSION 1

#endif
