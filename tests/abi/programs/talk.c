/* Messages, collectives and globals of a rank's own; argv[1] chooses the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int counter = 100;

static void exchange(int rank, int size)
{
    int in[1000], out[1000];
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < 1000; i++) {
        in[i] = -1;
        out[i] = rank * 1000 + i;
    }
    MPI_Irecv(in, 1000, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Ssend(out, 1000, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    int wrong = 0, count;
    for (int i = 0; i < 1000; i++)
        wrong += in[i] != (rank + size - 1) % size * 1000 + i;
    MPI_Get_count(&status, MPI_INT, &count);
    counter += rank;
    printf("rank %d: %d wrong, %d from %d, null %d, counter %d\n", rank, wrong, count,
           status.MPI_SOURCE, request == MPI_REQUEST_NULL, counter);
}

static void product(void *in, void *inout, int *len, MPI_Datatype *type)
{
    for (int i = 0; i < *len; i++)
        ((double *)inout)[i] *= ((double *)in)[i];
    if (*type != MPI_DOUBLE)
        abort();
}

static int calls;

static void handler(MPI_Comm *comm, int *code, ...)
{
    int class;
    MPI_Error_class(*code, &class);
    calls += class == MPI_ERR_RANK;
}

static int copy(MPI_Comm comm, int key, void *state, void *in, void *out, int *flag)
{
    *(void **)out = (char *)in + *(int *)state;
    *flag = 1;
    return MPI_SUCCESS;
}

static int state = 5;

static void callbacks(int rank)
{
    double x[2] = {rank + 1, 2}, y[2];
    MPI_Op op;
    MPI_Op_create(product, 1, &op);
    MPI_Allreduce(x, y, 2, MPI_DOUBLE, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    MPI_Errhandler errhandler;
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    int code = MPI_Send(x, 1, MPI_DOUBLE, 77, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    int key, flag;
    char text[10], *value;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, &state);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, text);
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_get_attr(dup, key, &value, &flag);
    int *limit;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag);
    MPI_Comm_free(&dup);
    printf("rank %d: product %g %g, handler %d %d, attribute %d, tags %d, null %d\n", rank, y[0],
           y[1], calls, code != MPI_SUCCESS, (int)(value - text), *limit > 32766,
           dup == MPI_COMM_NULL);
}

static void layouts(int rank, int size)
{
    int matrix[4][4], column[4] = {-1, -1, -1, -1};
    for (int i = 0; i < 16; i++)
        matrix[i / 4][i % 4] = rank * 16 + i;
    MPI_Datatype type;
    MPI_Type_vector(4, 1, 4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(&matrix[0][1], 1, type, (rank + 1) % size, 0, column, 4, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    char packed[100];
    int position = 0, read[4];
    MPI_Pack(column, 4, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD);
    int end = position;
    position = 0;
    MPI_Unpack(packed, end, &position, read, 4, MPI_INT, MPI_COMM_WORLD);
    printf("rank %d: column %d %d %d %d, packed %d, null %d\n", rank, read[0], read[1], read[2],
           read[3], end, type == MPI_DATATYPE_NULL);
}

static void windows(int rank, int size)
{
    long cell[2] = {rank, 0}, *base;
    MPI_Win window, shared;
    MPI_Win_create(cell, sizeof cell, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    long mine = 10 * rank;
    MPI_Win_fence(0, window);
    MPI_Put(&mine, 1, MPI_LONG, (rank + 1) % size, 1, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &shared);
    *base = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    long one = 1, before;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, shared);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, shared);
    MPI_Win_unlock(0, shared);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d: put %ld, sum %ld\n", rank, cell[1], rank ? -1 : *base);
    MPI_Win_free(&shared);
}

static void library(int rank)
{
    char text[40], words[] = "one two three";
    int numbers[3];
    sprintf(text, "%d", rank);
    setenv("MINE", text, 1);
    setenv("MINE", "other", 0);
    setenv("GONE", "x", 1);
    srand(rank + 1);
    char *word = strtok(words, " ");
    for (int i = 0; i < 3; i++) {
        numbers[i] = rand() % 1000;
        MPI_Barrier(MPI_COMM_WORLD);
        word = i < 2 ? strtok(NULL, " ") : word;
    }
    unsetenv("GONE");
    printf("rank %d: %d %d %d, %s, %s, %s\n", rank, numbers[0], numbers[1], numbers[2], word,
           getenv("MINE"), getenv("GONE") ? "there" : "gone");
}

static void at_end(void) { printf("at the end\n"); }

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "") == 0) {
        exchange(rank, size);
        callbacks(rank);
        layouts(rank, size);
        windows(rank, size);
    } else if (strcmp(what, "deadlock") == 0) {
        MPI_Recv(&size, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(what, "exit") == 0) {
        atexit(at_end);
        printf("unflushed");
        MPI_Finalize();
        exit(7);
    } else if (strcmp(what, "mpi abort") == 0) {
        if (rank == 1)
            MPI_Abort(MPI_COMM_WORLD, 9);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(what, "abort") == 0) {
        if (rank == 1)
            abort();
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(what, "error") == 0) {
        MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    } else if (strcmp(what, "sleep") == 0) {
        struct timespec before, after;
        double start = MPI_Wtime();
        clock_gettime(CLOCK_MONOTONIC, &before);
        sleep(1);
        usleep(500000);
        clock_gettime(CLOCK_MONOTONIC, &after);
        printf("rank %d: %.1f %.1f\n", rank, MPI_Wtime() - start,
               after.tv_sec - before.tv_sec + (after.tv_nsec - before.tv_nsec) * 1e-9);
    } else if (strcmp(what, "library") == 0) {
        library(rank);
    } else if (strcmp(what, "names") == 0) {
        char *mine = getenv("MY_NAME");
        printf("%d words, %s, %s\n", argc, argv[argc - 1], mine ? mine : "no name");
    }
    MPI_Finalize();
    return 0;
}
