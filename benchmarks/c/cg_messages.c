/* The messages of NAS CG (NPB 3.4) without its arithmetic: ITERATIONS of 25 conjugate-gradient
   steps for a matrix of ORDER rows, on a power of two of ranks.
   Rank 0 prints the time of the slowest rank, in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int steps, partners[32], transposed;
static double *in, *out;

/* The sum of COUNT numbers over a row of the grid. */
static void sum_row(int count)
{
    for (int i = 0; i < steps; i++) {
        MPI_Request request;
        MPI_Irecv(in, count, MPI_DOUBLE, partners[i], i + 1, MPI_COMM_WORLD, &request);
        MPI_Send(out, count, MPI_DOUBLE, partners[i], i + 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* The sum of a product over a row of the grid, and its exchange with the transposed rank. */
static void hand_over(int count)
{
    MPI_Request request;
    for (int i = steps - 1; i >= 0; i--) {
        MPI_Irecv(in, count, MPI_DOUBLE, partners[i], i + 1, MPI_COMM_WORLD, &request);
        MPI_Send(out, count, MPI_DOUBLE, partners[i], i + 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Irecv(in, count, MPI_DOUBLE, transposed, 1, MPI_COMM_WORLD, &request);
    MPI_Send(out, count, MPI_DOUBLE, transposed, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, height = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int iterations = atoi(argv[1]), order = atoi(argv[2]);
    while (height * height * 4 <= size)
        height *= 2;
    int width = size / height, row = rank / width, column = rank % width;
    if (width == height)
        transposed = rank % height * height + rank / height;
    else
        transposed = 2 * (rank / 2 % height * height + rank / 2 / height) + rank % 2;
    for (int distance = width / 2; distance > 0; distance /= 2)
        partners[steps++] = row * width + (column ^ distance);
    int share = order / width;
    in = calloc(share, sizeof(double));
    out = calloc(share, sizeof(double));

    double start = MPI_Wtime();
    for (int i = 0; i < iterations; i++) {
        sum_row(1);
        for (int k = 0; k < 25; k++) {
            hand_over(share);
            sum_row(1);
            sum_row(1);
        }
        hand_over(share);
        sum_row(1);
        sum_row(2);
    }
    double mine = MPI_Wtime() - start, slowest;

    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("simulated %.9g\n", slowest);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
