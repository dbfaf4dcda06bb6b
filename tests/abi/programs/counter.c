/* A tool: counts the sends of each rank by the names of MPI for tools. */
#include <mpi.h>
#include <stdio.h>

static int sends;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: %d sends\n", rank, sends);
    return PMPI_Finalize();
}
