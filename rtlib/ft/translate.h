/* With spare processes MPI_COMM_WORLD of Open MPI is not the program's: it has more processes, and
 * which of them is a rank changes. What the program is told, and what it names, is translated where
 * Open MPI is called. */
#ifndef RM_RTLIB_FT_TRANSLATE_H
#define RM_RTLIB_FT_TRANSLATE_H

/* From here on `mpi`, by which the library calls Open MPI, takes and returns ranks of the program
 * on MPI_COMM_WORLD. Without spare processes nothing has to be done. */
void translate_start(void);

#endif
