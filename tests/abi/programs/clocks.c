/* What a program's calls and its compute cost in simulated time. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

#define CALLS 10000

static volatile double sink;

static void work(void)
{
    for (int i = 0; i < 20000000; i++)
        sink += i;
}

static void reduce(void *in, void *inout, int *count, MPI_Datatype *type)
{
    work();
}

int main(int argc, char **argv)
{
    int size, rank, value = 1, sum = 0;
    struct timespec start, end;
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Op_create(reduce, 1, &op);
    double begin = MPI_Wtime();
    for (int i = 0; i < CALLS; i++)
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    double calls = (MPI_Wtime() - begin) / CALLS;
    begin = MPI_Wtime();
    work();
    double block = MPI_Wtime() - begin;
    begin = MPI_Wtime();
    MPI_Reduce_local(&value, &sum, 1, MPI_INT, op);
    double inside = MPI_Wtime() - begin;
    clock_gettime(CLOCK_MONOTONIC, &start);
    work();
    clock_gettime(CLOCK_MONOTONIC, &end);
    double clocked = end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec);
    if (rank == 0)
        printf("%g %g %g %g\n", calls, block, inside, clocked);
    MPI_Finalize();
    return 0;
}
