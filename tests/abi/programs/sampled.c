/* The macros of SMPI, which its header of MPI has. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int runs, calls;
static volatile double sink;

static void *squares(int n)
{
    static int values[8];
    calls++;
    for (int i = 0; i < n; i++)
        values[i] = i * i;
    return values;
}

int main(int argc, char **argv)
{
    int rank, all, made;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    double begin = MPI_Wtime();
    SMPI_SAMPLE_LOCAL(int i = 0, i < 100, i++, 5, -1)
    {
        runs++;
        for (int j = 0; j < 1000000; j++)
            sink += j;
    }
    double local = MPI_Wtime() - begin;
    int here = runs;

    runs = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    SMPI_SAMPLE_GLOBAL(int i = 0, i < 100, i++, 6, 0.0001)
    {
        runs++;
        smpi_execute(0.001 * (runs % 2));
    }
    MPI_Allreduce(&runs, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

    begin = MPI_Wtime();
    smpi_execute(0.25);
    SMPI_SAMPLE_DELAY(0.5) runs++;
    double passed = MPI_Wtime() - begin;
    begin = MPI_Wtime();
    smpi_execute_flops(2e9);
    double flops = MPI_Wtime() - begin;

    int *shared = SMPI_SHARED_MALLOC(1 << 20);
    int *own = SMPI_PARTIAL_SHARED_MALLOC(4096, NULL, 0);
    shared[7] = own[7] = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    int last = shared[7], mine = own[7] == rank;
    MPI_Barrier(MPI_COMM_WORLD);
    SMPI_SHARED_FREE(shared);
    SMPI_SHARED_FREE(own);
    int *values = SMPI_SHARED_CALL(squares, "8", 8);
    MPI_Allreduce(&calls, &made, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d %g %d %g %g | %d %d %d %d\n", here, local, all, passed, flops, last, mine, values[7],
           made);
    MPI_Finalize();
    return 0;
}
