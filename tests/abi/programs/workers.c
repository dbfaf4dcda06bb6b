/* Threads that live across calls of MPI, with data of their own and condition variables. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_key_t own;
static int job, done, stop, rank, size, freed;
static long sum;
static const char *what;

static int is(const char *name) { return strcmp(what, name) == 0; }

static void act(void)
{
    int flag = 0;
    if (is("call") && MPI_Iprobe(0, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        *(volatile int *)NULL = 1; /* goes on with what it has not got */
    if (is("fault"))
        *(volatile int *)NULL = 1; /* the fault */
    if (is("exit"))
        exit(9);
    while (is("busy")) /* beyond the end of the rank */
        ++*(volatile int *)&freed;
}

static void count_freed(void *memory)
{
    free(memory);
    __atomic_add_fetch(&freed, 1, __ATOMIC_RELAXED);
}

static void *work(void *number)
{
    int seen = 0;
    struct timespec now;
    pthread_setspecific(own, calloc(1, sizeof(long)));
    pthread_mutex_lock(&lock);
    for (;;) {
        while (job == seen && !stop)
            pthread_cond_wait(&changed, &lock);
        if (stop)
            break;
        seen = job;
        pthread_mutex_unlock(&lock);
        long *mine = pthread_getspecific(own);
        for (int i = 0; i < 20000; i++)
            *mine += (long)number;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (is("print"))
            fprintf(stderr, "%d", seen), fflush(stderr);
        if (rank == 1 && seen == 3)
            act();
        pthread_mutex_lock(&lock);
        sum = *mine;
        done++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    pthread_t threads[2];
    what = argv[1];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_key_create(&own, count_freed);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)1L);
    for (int k = 1; k <= 8; k++) {
        int value = k;
        pthread_mutex_lock(&lock);
        job = k;
        done = 0;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (value != k * size)
            printf("wrong sum\n");
        pthread_mutex_lock(&lock);
        while (done < 2 && !(is("busy") && rank == 1))
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    if (is("busy") || is("idle")) /* the threads are there when the program ends */
        return 0;
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %ld %d\n", level == MPI_THREAD_FUNNELED, sum, freed);
    MPI_Finalize();
    return 0;
}
