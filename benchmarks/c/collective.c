/* COLLECTIVE REPEATS BYTES: one collective operation, again and again; BYTES of a vector or block.
   Rank 0 prints the time of the slowest rank, in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(name) (!strcmp(op, name))

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *op = argv[1];
    int repeats = atoi(argv[2]), n = atoi(argv[3]);
    size_t total = (size_t)size * n + 64;
    int vector = IS("bcast") || IS("reduce") || IS("allreduce");
    int rooted = IS("gather") || IS("scatter");
    char *a, *b;
    if (vector || rooted) {
        size_t mine = vector || rank ? (size_t)n + 64 : total;
        a = calloc(mine, 1);
        b = calloc(mine, 1);
    } else {
        /* That would not fit: one piece of memory stands for the buffers of all ranks. */
        a = SMPI_SHARED_MALLOC(total);
        b = SMPI_SHARED_MALLOC(total);
    }
    int *counts = malloc(size * sizeof(int)), *starts = malloc(size * sizeof(int));
    for (int i = 0; i < size; i++) {
        counts[i] = n;
        starts[i] = i * n;
    }
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_SIGNED_CHAR;
    double start = MPI_Wtime();
    for (int i = 0; i < repeats; i++) {
        if (IS("barrier")) MPI_Barrier(world);
        else if (IS("bcast")) MPI_Bcast(a, n, type, 0, world);
        else if (IS("reduce")) MPI_Reduce(a, b, n, type, MPI_SUM, 0, world);
        else if (IS("allreduce")) MPI_Allreduce(a, b, n, type, MPI_SUM, world);
        else if (IS("gather")) MPI_Gather(a, n, type, b, n, type, 0, world);
        else if (IS("scatter")) MPI_Scatter(a, n, type, b, n, type, 0, world);
        else if (IS("allgather")) MPI_Allgather(a, n, type, b, n, type, world);
        else if (IS("allgatherv")) MPI_Allgatherv(a, n, type, b, counts, starts, type, world);
        else if (IS("alltoall")) MPI_Alltoall(a, n, type, b, n, type, world);
        else if (IS("alltoallv"))
            MPI_Alltoallv(a, counts, starts, type, b, counts, starts, type, world);
        else if (IS("reduce_scatter")) MPI_Reduce_scatter(a, b, counts, type, MPI_SUM, world);
    }
    double mine = MPI_Wtime() - start, slowest;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, world);
    if (rank == 0)
        printf("simulated %.9g\n", slowest);
    MPI_Finalize();
    return 0;
}
