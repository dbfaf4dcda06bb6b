/* Each rank keeps DEPTH messages of BYTES in flight to the next one, REPEATS times.
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
    int repeats = atoi(argv[1]), bytes = atoi(argv[2]), depth = atoi(argv[3]);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *out = calloc(bytes, 1), *in = calloc((size_t)bytes * depth, 1);
    MPI_Request *requests = calloc(2 * depth, sizeof(MPI_Request));

    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++) {
        for (int k = 0; k < depth; k++)
            MPI_Irecv(in + (size_t)bytes * k, bytes, MPI_BYTE, before, 0, MPI_COMM_WORLD,
                      &requests[k]);
        for (int k = 0; k < depth; k++)
            MPI_Isend(out, bytes, MPI_BYTE, next, 0, MPI_COMM_WORLD, &requests[depth + k]);
        MPI_Waitall(2 * depth, requests, MPI_STATUSES_IGNORE);
    }
    double mine = MPI_Wtime() - start, slowest;

    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("simulated %.9g\n", slowest);
    free(out);
    free(in);
    free(requests);
    MPI_Finalize();
    return 0;
}
