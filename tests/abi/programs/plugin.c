/* A library that a program opens: it needs the one that the program needs. */

#include <mpi.h>

extern int books;
int lend(int to, int from);
static int uses;

int use(int to, int from)
{
    int sum = 0;
    uses++;
    books += 100;
    int got = lend(to, from);
    MPI_Allreduce(&uses, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return got * 10 + sum;
}
