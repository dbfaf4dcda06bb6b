/* Ways in which a program ends, or leaves a function that MPI calls; argv[1] chooses one. */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static jmp_buf back;
static int rank, size;

static void jump(MPI_Comm *comm, int *code, ...) { longjmp(back, 1); }

static void jump_out(void *in, void *inout, int *count, MPI_Datatype *type) { longjmp(back, 2); }

/* An error handler that does not return, as older codes write it. */
static void handler(void)
{
    static volatile int times;
    char *volatile block = malloc(1 << 20);
    MPI_Errhandler own;
    MPI_Comm_create_errhandler(jump, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    for (volatile int i = 0; i < 50; i++)
        if (setjmp(back) == 0)
            MPI_Send(block, 1, MPI_INT, size + 5, 0, MPI_COMM_WORLD);
        else
            times++;
    MPI_Op op;
    MPI_Op_create(jump_out, 1, &op);
    if (setjmp(back) == 0)
        MPI_Reduce_local(block, block + 8, 1, MPI_INT, op);
    else
        times++;
    int sum = 0, mine = times;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d jumped %d times, all %d\n", rank, times, sum);
}

static void *call(void *argument)
{
    int value = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &value);
    *(int *)argument = value;
    return NULL;
}

static void threads(void)
{
    pthread_t all[4];
    int values[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, call, &values[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    printf("rank %d: %d %d %d %d\n", rank, values[0], values[1], values[2], values[3]);
}

static void crash(int *where) { *where = 1; }

int main(int argc, char **argv)
{
    const char *what = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "handle") == 0)
        MPI_Comm_size(0x44000077, &size);
    if (strcmp(what, "handler") == 0)
        handler();
    if (strcmp(what, "threads") == 0)
        threads();
    if (strcmp(what, "loop") == 0) {
        printf("loops\n");
        fflush(stdout);
        for (volatile long i = 0;; i++)
            ;
    }
    if (strcmp(what, "exit") == 0 && rank == 1)
        exit(7);
    if (strcmp(what, "abort") == 0 && rank == 1)
        abort();
    if (strcmp(what, "crash") == 0 && rank == 1)
        crash(NULL);
    if (strcmp(what, "deadlock") == 0)
        MPI_Recv(&size, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
