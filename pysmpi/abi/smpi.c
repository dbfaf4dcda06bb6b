/* What SMPI's header `smpi/smpi.h` declares beside MPI (see smpi.py). */

#include <stddef.h>
#include <stdlib.h>

#include "engine.h"

#define EXPORT __attribute__((visibility("default")))
#define PYTHON(number, ...)                                                                        \
    psm_call(number, (const long long[]){__VA_ARGS__, 0}, __builtin_return_address(0))
#define TEXT(pointer) ((long long)(intptr_t)(pointer))

EXPORT void smpi_execute(double seconds) { PYTHON(PSM_EXECUTE, (long long)(seconds * 1e9)); }
EXPORT void smpi_execute_benched(double seconds) { PYTHON(PSM_EXECUTE, (long long)(seconds * 1e9)); }
EXPORT void smpi_execute_flops(double flops) { PYTHON(PSM_EXECUTE_FLOPS, (long long)flops); }
EXPORT void smpi_execute_flops_benched(double flops) { PYTHON(PSM_EXECUTE_FLOPS, (long long)flops); }

EXPORT int
psm_sample(int global, const char *file, int line, const char *tag, int iterations, double threshold)
{
    return (int)PYTHON(PSM_SAMPLE, global, TEXT(file), line, TEXT(tag), iterations,
                       (long long)(threshold * 1e9));
}

EXPORT void
psm_sampled(int global, const char *file, int line, const char *tag)
{
    PYTHON(PSM_SAMPLED, global, TEXT(file), line, TEXT(tag));
}

EXPORT void *
smpi_shared_malloc(size_t size, const char *file, int line)
{
    return (void *)(intptr_t)PYTHON(PSM_SHARED_MALLOC, (long long)size, TEXT(file), line);
}

EXPORT void *
smpi_shared_malloc_partial(size_t size, const size_t *offsets, int blocks)
{
    (void)offsets;
    (void)blocks;
    return (void *)(intptr_t)PYTHON(PSM_SHARED_MALLOC, (long long)size, 0, 0);
}

EXPORT void smpi_shared_free(void *data) { PYTHON(PSM_SHARED_FREE, TEXT(data)); }

EXPORT int
smpi_shared_known_call(const char *function, const char *input)
{
    return PYTHON(PSM_SHARED_CALL, TEXT(function), TEXT(input), 0) != 0;
}

EXPORT void *
smpi_shared_get_call(const char *function, const char *input)
{
    return (void *)(intptr_t)PYTHON(PSM_SHARED_CALL, TEXT(function), TEXT(input), 0);
}

EXPORT void *
smpi_shared_set_call(const char *function, const char *input, void *data)
{
    PYTHON(PSM_SHARED_CALL, TEXT(function), TEXT(input), TEXT(data));
    return data;
}
