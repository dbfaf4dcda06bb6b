/* The clock of ranks that share a core, under SMPI: tests/differential/test_smpi_shared_cores.py.

   smpicc -O1 self_timed.c -o self_timed
   smpirun -np N -platform one_core.xml --cfg=smpi/simulate-computation:no ./self_timed [constant]

   Prints the looks of each rank at its clock: way, ranks, rank, seconds. Before each call a rank
   computes: given amounts, or 10 ms each time. */
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES (1 << 20)

static int constant, looks;
static double dates[64];
static char out[BYTES], in[BYTES];

static void compute(double seconds)
{
  smpi_execute_flops(1e9 * (constant ? 0.01 : seconds)); /* the core: 1 Gflop/s */
}

static void look(double seconds)
{
  compute(seconds);
  dates[looks++] = MPI_Wtime();
}

int main(int argc, char **argv)
{
  int rank, size;
  double one = 1.0, sum;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  constant = argc > 1 && !strcmp(argv[1], "constant");
  look(0.0);
  look(0.1 * (1 + rank % 3));
  compute(0.0);
  usleep(100000 * (rank % 2) + 1);
  look(0.05);
  compute(0.0);
  MPI_Barrier(MPI_COMM_WORLD);
  look(0.0);
  look(0.02 * (size - rank));
  if (size > 1) {
    compute(0.0);
    MPI_Sendrecv(out, BYTES, MPI_BYTE, (rank + 1) % size, 0, in, BYTES, MPI_BYTE,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  look(0.0);
  for (int i = 0; i <= rank; i++)
    look(0.01);
  compute(0.03);
  MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  look(0.0);
  for (int turn = 0; turn < size; turn++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (turn == rank) {
      printf("%s %d %d", constant ? "constant" : "given", size, rank);
      for (int i = 0; i < looks; i++)
        printf(" %.9f", dates[i]);
      printf("\n");
      fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
