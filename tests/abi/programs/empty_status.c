/* The statuses of requests that are null or inactive are empty; others keep their error. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int is_empty(const MPI_Status *status)
{
    int count, cancelled;
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Test_cancelled(status, &cancelled);
    return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG &&
           status->MPI_ERROR == MPI_SUCCESS && count == 0 && !cancelled;
}

#define SAY(call)                                                                                 \
    memset(&status, 0x55, sizeof status);                                                         \
    call;                                                                                         \
    printf("%d", is_empty(&status))

int main(int argc, char **argv)
{
    MPI_Status status;
    MPI_Request null = MPI_REQUEST_NULL, idle, active;
    int flag, index, value = 1, result;
    MPI_Init(&argc, &argv);
    MPI_Send_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &idle);
    SAY(MPI_Wait(&null, &status));
    SAY(MPI_Test(&null, &flag, &status));
    SAY(MPI_Waitany(1, &null, &index, &status));
    SAY(MPI_Testany(1, &null, &index, &flag, &status));
    SAY(MPI_Request_get_status(null, &flag, &status));
    SAY(MPI_Wait(&idle, &status));
    SAY(MPI_Request_get_status(idle, &flag, &status));
    MPI_Irecv(&result, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &active);
    MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
    SAY(MPI_Wait(&active, &status));
    printf(" %d %d %x\n", status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR);
    MPI_Request_free(&idle);
    MPI_Finalize();
    return 0;
}
