/* Instruction sets of processors, by the kernel's words for them in /proc/cpuinfo. Programs choose
 * their code by these when they begin, and cannot go on where one of them is missing. Pure. */
#ifndef RM_COMMON_INSTRUCTION_SETS_H
#define RM_COMMON_INSTRUCTION_SETS_H

/* Returns those of `flags` ("fpu vme avx2 ...", of a `machine` as uname(2) has it) that are
 * instruction sets: the other words tell of the kernel's own doings. malloc'ed, words with blanks
 * between them. */
char *instruction_sets_of(const char *flags, const char *machine);

/* The words of `needed` that are not among those of `have`. malloc'ed; NULL: there are none, or one
 * of the two lists is empty, which means that it is not known. */
char *instruction_sets_lacking(const char *have, const char *needed);

#endif
