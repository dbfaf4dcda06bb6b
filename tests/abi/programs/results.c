/* Handles that calls only store: what is there before is not read. Handles of predefined objects
   remain valid after calls that make the program's handle null. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Neither an address nor a handle. */
#define POISONED(type, name)                                                                       \
    type name;                                                                                     \
    memset(&name, 0x5a, sizeof name)

static int copy(MPI_Comm comm, int key, void *state, void *in, void *out, int *flag)
{
    *flag = 0;
    return MPI_SUCCESS;
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
}

static void handle(MPI_Comm *comm, int *code, ...)
{
}

static void once(int rank, int size)
{
    int value = rank, got = -1, flag = 0, sum;
    double space[4];
    POISONED(MPI_Request, request);
    POISONED(MPI_Request, other);
    POISONED(MPI_Message, message);
    POISONED(MPI_Comm, comm);
    POISONED(MPI_Comm, part);
    POISONED(MPI_Group, group);
    POISONED(MPI_Datatype, type);
    POISONED(MPI_Datatype, parts[2]);
    POISONED(MPI_Op, op);
    POISONED(MPI_Info, info);
    POISONED(MPI_Errhandler, errors);
    POISONED(MPI_Errhandler, usual);
    POISONED(MPI_Win, window);
    MPI_Status status;

    MPI_Isend(&value, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &request);
    while (!flag)
        MPI_Improbe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &message, &status);
    MPI_Imrecv(&got, 1, MPI_INT, &message, &other);
    MPI_Wait(&other, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("got %d %d\n", got == (rank + size - 1) % size, message == MPI_MESSAGE_NULL);

    MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status);
    printf("no process %d %d", flag, message == MPI_MESSAGE_NO_PROC);
    memset(&other, 0x5a, sizeof other);
    MPI_Imrecv(&got, 1, MPI_INT, &message, &other);
    MPI_Wait(&other, &status);
    printf(" %d", status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(&got, 1, MPI_INT, &message, &status);
    printf(" %d\n", status.MPI_SOURCE == MPI_PROC_NULL);

    memset(&other, 0x5a, sizeof other);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &other);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Comm_split(comm, 0, rank, &part);
    MPI_Comm_group(part, &group);
    MPI_Group_free(&group);
    MPI_Comm_create_errhandler(handle, &errors);
    MPI_Comm_set_errhandler(part, errors);
    MPI_Errhandler_free(&errors);
    MPI_Comm_get_errhandler(comm, &usual);
    MPI_Errhandler_free(&usual);
    MPI_Comm_get_errhandler(comm, &usual);
    printf("error handler %d", usual == MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(part, usual);
    MPI_Errhandler_free(&usual);
    MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN);
    printf(" %d\n", usual == MPI_ERRHANDLER_NULL);

    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    int integers[1];
    MPI_Aint addresses[1];
    MPI_Type_get_contents(type, 1, 0, 1, integers, addresses, parts);
    printf("contents %d %d\n", integers[0], parts[0] == MPI_INT);
    MPI_Type_free(&type);

    MPI_Op_create(add, 1, &op);
    MPI_Op_free(&op);
    MPI_Info_create(&info);
    MPI_Info_free(&info);
    MPI_Win_create(space, sizeof space, 1, MPI_INFO_NULL, part, &window);
    memset(&group, 0x5a, sizeof group);
    MPI_Win_get_group(window, &group);
    MPI_Group_free(&group);
    MPI_Win_free(&window);
    memset(&request, 0x5a, sizeof request);
    MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, part, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    memset(&request, 0x5a, sizeof request);
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("sum %d\n", sum);
    MPI_Comm_free(&part);
    MPI_Comm_free(&comm);
    int key;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    once(rank, size);
    once(rank, size);
    MPI_Finalize();
    return 0;
}
