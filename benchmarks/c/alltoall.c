/* REPEATS exchanges of BYTES between each pair of ranks.
   Rank 0 prints the time of the slowest rank, in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int repeats = atoi(argv[1]), bytes = atoi(argv[2]);
    char *out = calloc((size_t)size * bytes, 1), *in = calloc((size_t)size * bytes, 1);

    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++)
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    double mine = MPI_Wtime() - start, slowest;

    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("simulated %.9g\n", slowest);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
