/* Functions of programs whose arguments are not MPICH's: an adapter translates them. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <sys/mman.h>

#include "engine.h"

#define MOST (1u << 20)
#define BUCKETS 4096

static psm_closure *closures; /* those of the same functions are shared, so their number is bounded */
static uint32_t count = 1;    /* 0 ends a chain */
static uint32_t buckets[BUCKETS];

const psm_closure *
psm_closure_at(void *address)
{
    const psm_closure *closure = address;
    return closures != NULL && closure >= closures && closure < closures + count ? closure : NULL;
}

void *
psm_closure_of(psm_adapter *adapter, void *function)
{
    if (closures == NULL) {
        closures = mmap(NULL, MOST * sizeof *closures, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (closures == MAP_FAILED) {
            closures = NULL;
            return NULL;
        }
    }
    const uintptr_t key = (uintptr_t)adapter * 31 + (uintptr_t)function;
    uint32_t *bucket = &buckets[(key ^ key >> 12 ^ key >> 24) % BUCKETS];
    for (uint32_t i = *bucket; i != 0; i = closures[i].next)
        if (closures[i].adapter == adapter && closures[i].function == function)
            return &closures[i];
    if (count == MOST)
        return NULL;
    closures[count] = (psm_closure){adapter, function, *bucket};
    *bucket = count;
    return &closures[count++];
}
