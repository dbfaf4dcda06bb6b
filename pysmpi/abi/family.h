/* The libraries of other binary interfaces, and those of Fortran: they translate arguments and results
   to MPICH's, which the engine has.

   A library includes this file, defines what is special in its interface (`in_handle` and its like), and
   includes its entry points, which `families.py` writes. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <alloca.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "generated/numbers.h"

#define SITE __builtin_return_address(0)
#define EXPORT __attribute__((visibility("default")))
#define UNSET 0x7fffffff7fffffffLL /* of a result that a function has not stored */
#define STORED(value) ((uint32_t)(value) != (uint32_t)UNSET)
#define UNSET_INTEGER 0x7fffffff
#define MPICH_IN_PLACE (-1LL)
#define MPICH_AUTOMATIC (-2LL)
#define MPICH_IGNORE 1LL
#define UNDEFINED (-32766)

static const psm_core *core;

/* The engine gives its functions to each library after loading it. */
EXPORT void psm_attach(const psm_core *engine);

/* A status as MPICH has it. */
typedef struct {
    int low, high, source, tag, error;
} psm_status;

/* An integer constant in MPICH's and in this interface. */
typedef struct {
    int mpich, own;
} psm_pair;

/* A predefined handle. */
typedef struct {
    char kind;
    uint32_t number; /* MPICH's */
    int fortran;     /* its integer in Fortran; -1 if it is MPICH's */
    const char *name;
    void *value; /* in C */
} psm_handle;

static int
to_mpich(const psm_pair *pairs, int value)
{
    for (; pairs->mpich != UNSET_INTEGER; pairs++)
        if (pairs->own == value)
            return pairs->mpich;
    return value;
}

static int
from_mpich(const psm_pair *pairs, int value)
{
    for (; pairs->mpich != UNSET_INTEGER; pairs++)
        if (pairs->mpich == value)
            return pairs->own;
    return value;
}

/* Flags that are added to each other. */

static inline int
bits_to_mpich(const psm_pair *pairs, int value)
{
    int result = 0;
    for (; pairs->mpich != UNSET_INTEGER; pairs++)
        if (value & pairs->own) {
            result |= pairs->mpich;
            value &= ~pairs->own;
        }
    return result | value;
}

static inline int
bits_from_mpich(const psm_pair *pairs, int value)
{
    int result = 0;
    for (; pairs->mpich != UNSET_INTEGER; pairs++)
        if (value & pairs->mpich)
            result |= pairs->own;
    return result;
}

/* Predefined handles by MPICH's numbers. */

#define BUCKETS 1024
static short buckets[BUCKETS]; /* 1 + the index of a handle */

static inline unsigned
bucket(char kind, uint32_t number)
{
    return (number * 2654435761u >> 16 ^ (unsigned)kind * 37) % BUCKETS;
}

static void
fill_buckets(const psm_handle *handles, int count)
{
    for (int i = 0; i < count; i++) {
        unsigned at = bucket(handles[i].kind, handles[i].number);
        int again = 0;
        for (; buckets[at] != 0; at = (at + 1) % BUCKETS) {
            const psm_handle *other = &handles[buckets[at] - 1];
            again = again || (other->kind == handles[i].kind && other->number == handles[i].number);
        }
        if (!again)
            buckets[at] = (short)(i + 1);
    }
}

/* The index of a predefined handle, or -1. */
static inline int
find_handle(const psm_handle *handles, char kind, uint32_t number)
{
    for (unsigned at = bucket(kind, number); buckets[at] != 0; at = (at + 1) % BUCKETS) {
        const psm_handle *handle = &handles[buckets[at] - 1];
        if (handle->kind == kind && handle->number == number)
            return buckets[at] - 1;
    }
    return -1;
}

static long long
core_call(int number, void *site, long long a, long long b, long long c, long long d)
{
    const long long values[] = {a, b, c, d, 0, 0};
    return core->call(number, values, site);
}

/* The processes to which a collective operation with a datatype for each sends. */
static int
peers(long long comm, int neighbors, int incoming, void *site)
{
    int kind = 0, result = 0, inter = 0, before = 0, after = 0, weighted = 0;
    if (!neighbors) {
        core_call(PSM_Comm_test_inter, site, comm, (intptr_t)&inter, 0, 0);
        core_call(inter ? PSM_Comm_remote_size : PSM_Comm_size, site, comm, (intptr_t)&result, 0, 0);
        return result;
    }
    core_call(PSM_Topo_test, site, comm, (intptr_t)&kind, 0, 0);
    if (kind == 2) { /* CART */
        core_call(PSM_Cartdim_get, site, comm, (intptr_t)&result, 0, 0);
        return 2 * result;
    }
    if (kind == 1) { /* GRAPH */
        int rank = 0;
        core_call(PSM_Comm_rank, site, comm, (intptr_t)&rank, 0, 0);
        core_call(PSM_Graph_neighbors_count, site, comm, rank, (intptr_t)&result, 0);
        return result;
    }
    const long long values[] = {comm, (intptr_t)&before, (intptr_t)&after, (intptr_t)&weighted, 0};
    core->call(PSM_Dist_graph_neighbors_count, values, site);
    return incoming ? before : after;
}

/* A status is the same in C and in Fortran. */
#define COPY_STATUS(from, to) (memcpy((void *)(to), (const void *)(from), sizeof(STATUS)), 0)
#define STATUS_c2f COPY_STATUS
#define STATUS_f2c COPY_STATUS
#define STATUS_c2f08 COPY_STATUS
#define STATUS_f082c COPY_STATUS
#define STATUS_f082f COPY_STATUS
#define STATUS_f2f08 COPY_STATUS

/* Values of attributes in C are addresses of integers; these stay for ever. */
static int *
integer_at(int value)
{
    static int *values;
    static int count, size;
    for (int i = 0; i < count; i++)
        if (values[i] == value)
            return &values[i];
    if (count == size) { /* older ones stay where they are */
        values = malloc(sizeof *values * 64);
        count = 0;
        size = 64;
        if (values == NULL)
            abort();
    }
    values[count] = value;
    return &values[count++];
}
