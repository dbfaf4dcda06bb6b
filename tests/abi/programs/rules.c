/* What calls of MPI return and leave, printed for a comparison with a real MPI. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int fails = 1;

static int copy(MPI_Comm comm, int key, void *state, void *value, void *result, int *flag)
{
    *flag = 1;
    *(void **)result = value;
    return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *state)
{
    return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int free_key(MPI_Comm comm, int key, void *value, void *state)
{
    return MPI_Comm_free_keyval(&key);
}

static int delete_type(MPI_Datatype type, int key, void *value, void *state)
{
    return fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int code(int error)
{
    int class = 0;
    MPI_Error_class(error, &class);
    return class;
}

static void attributes(void)
{
    MPI_Comm comm, second;
    int key, there;
    void *value;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_set_attr(comm, key, (void *)5);
    printf("replaced: %d\n", code(MPI_Comm_set_attr(comm, key, (void *)6)));
    MPI_Comm_get_attr(comm, key, &value, &there);
    printf("left: %d %ld\n", there, (long)value);
    printf("deleted: %d\n", code(MPI_Comm_delete_attr(comm, key)));
    MPI_Comm_get_attr(comm, key, &value, &there);
    printf("left: %d %ld\n", there, (long)value);
    printf("copied: %d", code(MPI_Comm_dup(comm, &second)));
    printf(" null %d\n", second == MPI_COMM_NULL);
    printf("freed: %d", code(MPI_Comm_free(&comm)));
    printf(" null %d\n", comm == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&key);

    int again;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_key, &key, NULL);
    MPI_Comm_set_attr(comm, key, (void *)7);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)8);
    again = key;
    MPI_Comm_free_keyval(&again);
    printf("key: %d", again == MPI_KEYVAL_INVALID);
    MPI_Comm_get_attr(comm, key, &value, &there);
    printf(" still %d %ld", there, (long)value);
    printf(" freed %d", MPI_Comm_free(&comm));
    again = key;
    printf(" again %d\n", MPI_Comm_free_keyval(&again));
}

static void types(void)
{
    static const struct {
        const char *name;
        MPI_Datatype type;
    } all[] = {
        {"2INTEGER", MPI_2INTEGER}, {"2REAL", MPI_2REAL},
        {"2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION}, {"LOGICAL1", MPI_LOGICAL1},
        {"LOGICAL2", MPI_LOGICAL2}, {"LOGICAL4", MPI_LOGICAL4}, {"LOGICAL8", MPI_LOGICAL8},
        {"LOGICAL16", MPI_LOGICAL16}, {"INTEGER16", MPI_INTEGER16}, {"REAL2", MPI_REAL2},
        {"COMPLEX4", MPI_COMPLEX4}, {"REAL16", MPI_REAL16},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char name[MPI_MAX_OBJECT_NAME];
        int length, size;
        MPI_Aint low, extent;
        MPI_Type_size(all[i].type, &size);
        MPI_Type_get_extent(all[i].type, &low, &extent);
        MPI_Type_get_name(all[i].type, name, &length);
        printf("%s: %d %ld %ld %s\n", all[i].name, size, (long)low, (long)extent, name);
    }
    int pair[2] = {3, 1}, least[2], one[2] = {3, 0};
    float real[2] = {2.5f, 4.0f}, most[2] = {2.0f, 1.0f};
    memcpy(least, one, sizeof one);
    MPI_Reduce_local(pair, least, 1, MPI_2INTEGER, MPI_MINLOC);
    MPI_Reduce_local(real, most, 1, MPI_2REAL, MPI_MAXLOC);
    printf("minloc %d %d, maxloc %g %g\n", least[0], least[1], most[0], most[1]);

    MPI_Datatype type;
    int key, there;
    void *value;
    MPI_Type_dup(MPI_INT, &type);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_type, &key, NULL);
    MPI_Type_set_attr(type, key, (void *)5);
    printf("type: %d", code(MPI_Type_set_attr(type, key, (void *)6)));
    printf(" %d", code(MPI_Type_delete_attr(type, key)));
    MPI_Type_get_attr(type, key, &value, &there);
    printf(" left %d %ld", there, (long)value);
    fails = 0;
    printf(" freed %d\n", MPI_Type_free(&type));
    fails = 1;
}

static void sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* Requests and operators have different handles. */
static void operators(int rank)
{
    int values[4] = {rank, 1, 2, 3}, sums[4][4];
    MPI_Request requests[4];
    for (int i = 0; i < 4; i++) {
        MPI_Op op;
        MPI_Op_create(sum, 1, &op);
        MPI_Iallreduce(values, sums[i], 4, MPI_INT, op, MPI_COMM_WORLD, &requests[i]);
        MPI_Op_free(&op);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    printf("operators %d: %d %d %d %d\n", rank, sums[0][0], sums[1][1], sums[2][2], sums[3][3]);
}

static void blocks(int rank, int size)
{
    int values[64], sums[4], in_place[64];
    for (int i = 0; i < 4 * size; i++)
        values[i] = in_place[i] = rank + i;
    MPI_Reduce_scatter_block(values, sums, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, in_place, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("blocks %d: %d %d %d\n", rank, sums[0], sums[3], memcmp(sums, in_place, sizeof sums));
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    blocks(rank, size);
    operators(rank);
    if (rank == 0) {
        /* Errors of calls without a communicator. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int length;
        printf("null: %d\n", code(MPI_Type_size(MPI_DATATYPE_NULL, &length)));
        MPI_File null = MPI_FILE_NULL;
        MPI_Offset at;
        printf("file: %d %d\n", code(MPI_File_close(&null)), code(MPI_File_get_position(null, &at)));
        attributes();
        types();
        MPI_Status status;
        MPI_Count count;
        memset(&status, 0, sizeof status);
        MPI_Status_set_elements_x(&status, MPI_BYTE, 0x7654321ff1234567);
        MPI_Get_elements_x(&status, MPI_BYTE, &count);
        printf("count %llx\n", (long long)count);
    }
    MPI_Finalize();
    return 0;
}
