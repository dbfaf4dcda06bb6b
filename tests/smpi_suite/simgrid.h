/* What tests of SMPI use of SimGrid beside MPI: memory, messages with the simulated time, and the
   headers that SMPI's mpi.h includes. */
#ifndef TESTS_SIMGRID_H
#define TESTS_SIMGRID_H
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define XBT_ATTRIB_UNUSED __attribute__((unused))
#define XBT_LOG_NEW_DEFAULT_CATEGORY(name, ...) static const char xbt_category[] = #name
#define XBT_INFO(...) xbt_say(xbt_category, "INFO", __VA_ARGS__)
#define xbt_new(type, count) ((type *)malloc(sizeof(type) * (count)))
#define xbt_new0(type, count) ((type *)calloc(count, sizeof(type)))
#define xbt_malloc(size) malloc(size)
#define xbt_malloc0(size) calloc(1, size)
#define xbt_realloc(data, size) realloc(data, size)
#define xbt_free(data) free(data)
#define xbt_assert(condition, ...)                                                                \
    do                                                                                            \
        if (!(condition))                                                                         \
            abort();                                                                              \
    while (0)
#define TRACE_smpi_set_category(name) ((void)0)
#define aid_t long

/* The line of SimGrid's log: host, rank, number of the actor, simulated seconds. */
__attribute__((unused)) static void xbt_line(double now, const char *category, const char *level,
                                             const char *text)
{
    char host[MPI_MAX_PROCESSOR_NAME];
    int length, rank;
    MPI_Get_processor_name(host, &length);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("[%s:%d:(%d) %.6f] [%s/%s] %s\n", host, rank, rank + 1, now, category, level, text);
}

#define xbt_say(category, level, ...)                                                             \
    do {                                                                                          \
        char xbt_text[4096];                                                                      \
        snprintf(xbt_text, sizeof xbt_text, __VA_ARGS__);                                         \
        xbt_line(MPI_Wtime(), category, level, xbt_text);                                         \
    } while (0)

__attribute__((unused)) static long sg_actor_self_get_pid(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank + 1;
}

#ifdef TESTS_CALLS /* the log of the calls */
#define TESTS_CALL(Name, ...)                                                                     \
    ({                                                                                            \
        xbt_say("smpi_mpi", "VERBOSE", "SMPI - Entering MPI_" #Name);                             \
        int xbt_result = (MPI_##Name)(__VA_ARGS__);                                               \
        xbt_say("smpi_mpi", "VERBOSE", "SMPI - Leaving MPI_" #Name);                              \
        xbt_result;                                                                               \
    })
#define MPI_Init(...)                                                                             \
    ({                                                                                            \
        int xbt_result = (MPI_Init)(__VA_ARGS__);                                                 \
        xbt_line(0.0, "smpi_mpi", "VERBOSE", "SMPI - Entering MPI_Init");                         \
        xbt_say("smpi_mpi", "VERBOSE", "SMPI - Leaving MPI_Init");                                \
        xbt_result;                                                                               \
    })
#define MPI_Finalize()                                                                            \
    ({                                                                                            \
        xbt_say("smpi_mpi", "VERBOSE", "SMPI - Entering MPI_Finalize");                           \
        int xbt_result = (MPI_Barrier)(MPI_COMM_SELF);                                            \
        xbt_say("smpi_mpi", "VERBOSE", "SMPI - Leaving MPI_Finalize");                            \
        xbt_result | (MPI_Finalize)();                                                            \
    })
#define MPI_Comm_size(...) TESTS_CALL(Comm_size, __VA_ARGS__)
#define MPI_Comm_rank(...) TESTS_CALL(Comm_rank, __VA_ARGS__)
#define MPI_Send(...) TESTS_CALL(Send, __VA_ARGS__)
#define MPI_Recv(...) TESTS_CALL(Recv, __VA_ARGS__)
#endif
#endif
