/* Each rank of a torus exchanges BYTES with its four neighbours, REPEATS times, without blocking.
   Rank 0 prints the time of the slowest rank, in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int repeats = atoi(argv[1]), bytes = atoi(argv[2]);
    int size, rank, shape[2] = {0, 0}, periods[2] = {1, 1}, peers[4];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, shape);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, shape, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_shift(grid, 0, 1, &peers[0], &peers[1]);
    MPI_Cart_shift(grid, 1, 1, &peers[2], &peers[3]);
    char *out[4], *in[4];
    for (int i = 0; i < 4; i++) {
        out[i] = calloc(bytes, 1);
        in[i] = calloc(bytes, 1);
    }

    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++) {
        MPI_Request requests[8];
        for (int k = 0; k < 4; k++)
            MPI_Irecv(in[k], bytes, MPI_BYTE, peers[k], 0, grid, &requests[k]);
        for (int k = 0; k < 4; k++)
            MPI_Isend(out[k], bytes, MPI_BYTE, peers[k], 0, grid, &requests[4 + k]);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
    double mine = MPI_Wtime() - start, slowest;

    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("simulated %.9g\n", slowest);
    for (int i = 0; i < 4; i++) {
        free(out[i]);
        free(in[i]);
    }
    MPI_Finalize();
    return 0;
}
