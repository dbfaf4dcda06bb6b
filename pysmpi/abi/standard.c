/* The standard binary interface of MPI 5.0 (libmpi_abi.so.1).

   Predefined handles are small integers cast to pointers; other handles are MPICH's integers. */

#include <stddef.h>

#include "family.h"
#include "generated/standard_tables.h"

typedef void *HANDLE;
typedef struct {
    int source, tag, error, low, high, reserved[3];
} STATUS;

#define PREDEFINED 0x1000 /* handles below are predefined */

static uint32_t numbers[PREDEFINED];

void
psm_attach(const psm_core *engine)
{
    core = engine;
    fill_buckets(handles, HANDLES_COUNT);
    for (int i = 0; i < PREDEFINED; i++)
        numbers[i] = UINT32_MAX; /* no handle */
    for (int i = 0; i < HANDLES_COUNT; i++)
        numbers[handles[i].fortran] = handles[i].number;
}

static inline long long
c_in(char kind, HANDLE handle)
{
    const uint32_t value = (uint32_t)(uintptr_t)handle;
    (void)kind;
    return value < PREDEFINED ? numbers[value] : value;
}

static inline HANDLE
c_out(char kind, uint32_t number)
{
    const int at = find_handle(handles, kind, number);
    return at >= 0 ? handles[at].value : (HANDLE)(uintptr_t)number;
}

/* The integers of Fortran are the same. */
#define f_in(kind, value) c_in(kind, (HANDLE)(uintptr_t)(uint32_t)(value))
#define f_out(kind, number) ((int)(uintptr_t)c_out(kind, number))

/* For handles in the objects of mpi4py. */
EXPORT uint32_t psm_into(char kind, HANDLE handle) { return (uint32_t)c_in(kind, handle); }
EXPORT HANDLE psm_out(char kind, uint32_t number) { return c_out(kind, number); }
EXPORT uint32_t psm_fortran_into(char kind, int handle) { return (uint32_t)f_in(kind, handle); }
EXPORT int psm_fortran_out(char kind, uint32_t number) { return f_out(kind, number); }

#include "roles.h"

#define IGNORED_c(status) ((status) == NULL)
#define ERRCODES_c(codes) (codes)
#define IS_IN_PLACE_c(buffer) ((buffer) == (void *)1)
#define c_buffer(buffer)                                                                           \
    ((buffer) == (void *)1 ? MPICH_IN_PLACE                                                        \
     : (buffer) == (void *)2 ? MPICH_AUTOMATIC                                                     \
                             : (intptr_t)(buffer))
#define out_buffer(buffer) ((buffer) == MPICH_AUTOMATIC ? 2 : (buffer))
#define c_weights(weights)                                                                         \
    ((weights) == (int *)10 ? (intptr_t)core->unweighted                                           \
     : (weights) == (int *)11 ? (intptr_t)core->empty                                              \
                              : (intptr_t)(weights))

static int
duplicate(HANDLE object, int key, void *state, void *value, void *result, int *flag)
{
    *(void **)result = value;
    *flag = 1;
    return 0;
}

/* 0 is the function that does nothing, 1 the one that copies the value. */
#define ADAPTED_c(type, function)                                                                  \
    adapted(c_##type, (function) == (void *)1 ? (void *)duplicate : (function))

static int ignored[8];
EXPORT int *MPI_F_STATUS_IGNORE = ignored, *MPI_F_STATUSES_IGNORE = ignored;
EXPORT void *MPI_F08_STATUS_IGNORE = ignored, *MPI_F08_STATUSES_IGNORE = ignored;

#include "generated/c_calls.h"
