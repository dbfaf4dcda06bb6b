/* Hello, a ring exchange, a barrier, an allreduce, and an allreduce in each of many parts.
 * With an argument, the parts are left out. */

#include <assert.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double start = MPI_Wtime();
    printf("hello %d\n", rank);

    long token = rank, received = -1, total = 0;
    MPI_Sendrecv(&token, 1, MPI_LONG, (rank + 1) % size, 0, &received, 1, MPI_LONG,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    assert(received == (rank + size - 1) % size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&token, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    assert(total == (long)size * (size - 1) / 2);

    if (argc == 1) {
        int parts = size / 10 < 1000 ? (size / 10 > 1 ? size / 10 : 1) : 1000;
        MPI_Comm part;
        MPI_Comm_split(MPI_COMM_WORLD, (int)((long)rank * parts / size), rank, &part);
        MPI_Allreduce(&token, &total, 1, MPI_LONG, MPI_SUM, part);
        MPI_Comm_free(&part);
    }
    if (rank == 0)
        fprintf(stdout, "simulated %.9g\n", MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
