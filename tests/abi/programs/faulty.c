/* A library of Python programs with MPI and faults. */

#include <mpi.h>
#include <stdlib.h>
#include <signal.h>

static volatile int zero;

int rank_of_caller(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int store(int *where) { return *where = 5; }
int divide(int value) { return value / zero; }
void stop(void) { abort(); }
void bus(void) { raise(SIGBUS); }

static int compare(const void *one, const void *other) { return store((int *)8) + (one < other); }

void sort(void)
{
    int values[] = {3, 2, 1};
    qsort(values, 3, sizeof *values, compare);
}
