/* REPEATS sums of BYTES of doubles over all ranks.
   Rank 0 prints the time of the slowest rank, in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int repeats = atoi(argv[1]), count = atoi(argv[2]) / (int)sizeof(double);
    double *in = calloc(count, sizeof(double)), *out = calloc(count, sizeof(double));

    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++)
        MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double mine = MPI_Wtime() - start, slowest;

    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("simulated %.9g\n", slowest);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
