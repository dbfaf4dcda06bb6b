/* Calls before MPI_Init and after MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, flag, failures;
static char text[MPI_MAX_LIBRARY_VERSION_STRING];
static MPI_Aint address;
static MPI_Datatype type;
static MPI_Group group;

static void refused(const char *name)
{
    if (strcmp(name, "Comm_rank") == 0)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    else if (strcmp(name, "Barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(name, "Send") == 0)
        MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    else if (strcmp(name, "Type_contiguous") == 0)
        MPI_Type_contiguous(2, MPI_INT, &type);
    else if (strcmp(name, "Get_address") == 0)
        MPI_Get_address(&rank, &address);
    else if (strcmp(name, "Query_thread") == 0)
        MPI_Query_thread(&flag);
    else if (strcmp(name, "Group_size") == 0) /* with a handle that is not valid */
        MPI_Group_size((MPI_Group)1234, &size);
    else
        exit(9);
    printf("went on\n");
}

#define CHECK(call) failures += (call) != MPI_SUCCESS
static void allowed(void)
{
    MPI_Info info;
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    CHECK(MPI_Initialized(&flag));
    CHECK(MPI_Finalized(&flag));
    CHECK(MPI_Get_version(&rank, &size));
    CHECK(MPI_Get_library_version(text, &size));
    CHECK(MPI_Info_create(&info));
    CHECK(MPI_Info_set(info, "a", "b"));
    CHECK(MPI_Info_free(&info));
    CHECK(MPI_Error_class(MPI_ERR_TAG, &size));
    CHECK(MPI_Error_string(MPI_ERR_TAG, text, &size));
    CHECK(MPI_Errhandler_free(&handler));
    failures += MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) != MPI_COMM_WORLD;
    failures += MPI_Wtime() < 0.0 || MPI_Wtick() <= 0.0 || MPI_Aint_add(8, 8) != 16;
}

static void in_a_session(void)
{
    MPI_Session session;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    CHECK(MPI_Group_size(group, &size));
    CHECK(MPI_Group_free(&group));
    CHECK(MPI_Session_finalize(&session));
}

int main(int argc, char **argv)
{
    if (strcmp(argv[1], "before") == 0)
        refused(argv[2]);
    allowed();
    in_a_session();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    allowed();
    in_a_session();
    if (strcmp(argv[1], "after") == 0)
        refused(argv[2]);
    printf("%d failures\n", failures);
    return 0;
}
