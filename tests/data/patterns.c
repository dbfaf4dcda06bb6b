/* One point-to-point pattern, entered by all ranks at time 0, under smpirun: patterns NAME BYTES.
   Each rank's time in seconds, one figure a line, rank 0 first.
   The patterns are those of tests/programs/p2p_patterns.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_REQUESTS 256

static int rank, size, count;
static char *message, *arrived;
static MPI_Request requests[MAX_REQUESTS];
static int started;

static void send_to(int to, int tag)
{
    MPI_Send(message, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static void receive_from(int source, int tag)
{
    MPI_Recv(arrived, count, MPI_BYTE, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void start_send(int to, int tag)
{
    MPI_Isend(message, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[started++]);
}

static void start_receive(int source, int tag, int place)
{
    MPI_Irecv(arrived + (size_t)place * count, count, MPI_BYTE, source, tag, MPI_COMM_WORLD,
              &requests[started++]);
}

static void finish(void)
{
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    started = 0;
}

static void exchange(int to, int source)
{
    MPI_Sendrecv(message, count, MPI_BYTE, to, 0, arrived, count, MPI_BYTE, source, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int around(int distance)
{
    return ((rank + distance) % size + size) % size;
}

static void pingpong(void)
{
    if (rank == 0) {
        send_to(size - 1, 0);
        receive_from(size - 1, 0);
    } else if (rank == size - 1) {
        receive_from(0, 0);
        send_to(0, 0);
    }
}

/* One message between the ends; each side sleeps first, in microseconds. */
static void one_message(int sender_sleeps, int receiver_sleeps, int synchronous)
{
    if (rank == 0) {
        usleep(sender_sleeps);
        if (synchronous)
            MPI_Ssend(message, count, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD);
        else
            send_to(size - 1, 0);
    } else if (rank == size - 1) {
        usleep(receiver_sleeps);
        receive_from(0, 0);
    }
}

static void send_late_recv(void) { one_message(0, 500000, 0); }
static void late_send_recv(void) { one_message(500000, 0, 0); }
static void ssend_late_recv(void) { one_message(0, 500000, 1); }

static void isend_wait(void)
{
    if (rank == 0) {
        start_send(size - 1, 0);
        usleep(1000);
    } else if (rank == size - 1) {
        start_receive(0, 0, 0);
        usleep(2000);
    }
    finish();
}

static void ring(void) { exchange(around(1), around(-1)); }
static void far_pairs(void) { exchange(around(size / 2), around(-(size / 2))); }

static void pairs(void)
{
    if ((rank ^ 1) < size)
        exchange(rank ^ 1, rank ^ 1);
}

static void oneway_far(void)
{
    int half = size / 2;
    if (rank < half)
        send_to(rank + half, 0);
    else if (rank < 2 * half)
        receive_from(rank - half, 0);
}

static void incast(void)
{
    if (rank)
        send_to(0, 0);
    else
        for (int source = 1; source < size; source++)
            start_receive(source, 0, source);
    finish();
}

static void fanout(void)
{
    if (rank)
        receive_from(0, 0);
    else
        for (int to = 1; to < size; to++)
            start_send(to, 0);
    finish();
}

static void halo(void)
{
    int distances[] = {1, size - 1, 2, size - 2};
    for (int i = 0; i < 4; i++)
        start_receive(around(-distances[i]), i, i);
    for (int i = 0; i < 4; i++)
        start_send(around(distances[i]), i);
    finish();
}

static void wave(void)
{
    if (rank > 0)
        receive_from(rank - 1, 0);
    if (rank < size - 1)
        send_to(rank + 1, 0);
}

static void staggered(void)
{
    usleep(100 * rank);
    start_receive(around(-1), 0, 0);
    start_send(around(1), 0);
    finish();
}

static void anysource(void)
{
    if (rank) {
        usleep(50 * (rank * 7 % size));
        send_to(0, rank);
    } else {
        for (int i = 1; i < size; i++)
            receive_from(MPI_ANY_SOURCE, MPI_ANY_TAG);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} patterns[] = {
    {"pingpong", pingpong},     {"send_late_recv", send_late_recv},
    {"late_send_recv", late_send_recv}, {"ssend_late_recv", ssend_late_recv},
    {"isend_wait", isend_wait}, {"ring", ring},
    {"pairs", pairs},           {"far_pairs", far_pairs},
    {"oneway_far", oneway_far}, {"incast", incast},
    {"fanout", fanout},         {"halo", halo},
    {"wave", wave},             {"staggered", staggered},
    {"anysource", anysource},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    count = atoi(argv[2]);
    message = calloc(count + 1, 1);
    arrived = SMPI_SHARED_MALLOC((size_t)count * (size > 4 ? size : 4) + 1);

    double start = MPI_Wtime();
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (!strcmp(patterns[i].name, argv[1]))
            patterns[i].run();
    double mine = MPI_Wtime() - start, *all = calloc(size, sizeof *all);

    usleep((useconds_t)((4.0 - MPI_Wtime()) * 1e6)); /* the gather must not meet the pattern */
    MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        for (int i = 0; i < size; i++)
            printf("%.12g\n", all[i]);
    free(all);
    free(message);
    SMPI_SHARED_FREE(arrived);
    MPI_Finalize();
    return 0;
}
