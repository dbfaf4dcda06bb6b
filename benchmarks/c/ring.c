/* Each rank sends BYTES to the next one and receives from the one before, REPEATS times.
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
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *out = calloc(bytes, 1), *in = calloc(bytes, 1);

    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++)
        MPI_Sendrecv(out, bytes, MPI_BYTE, next, 0, in, bytes, MPI_BYTE, before, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double mine = MPI_Wtime() - start, slowest;

    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("simulated %.9g\n", slowest);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
