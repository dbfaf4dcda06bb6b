/* Each rank but the last one sends as many messages to the last one as its number says. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int last = size - 1, messages = last * (last - 1) / 2;
    for (int i = 0; rank < last && i < rank; i++)
        MPI_Send(&word, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == last && i < messages; i++)
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
