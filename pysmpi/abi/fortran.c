/* The Fortran library of MPICH's binary interface (libmpifort.so.12, libmpichfort.so.12). */

#include <stddef.h>

#include "family.h"

#define SAME_CONSTANTS
#define FORTRAN_ALONE
#define FORTRAN_SLOT 2

typedef struct {
    int low, high, source, tag, error;
} STATUS;

void
psm_attach(const psm_core *engine)
{
    core = engine;
}

/* Handles are the integers of C. */
#define f_in(kind, value) ((long long)(uint32_t)(value))
#define f_out(kind, number) ((int)(number))

#include "roles.h"

/* Common blocks. */
EXPORT int mpipriv1_[7], mpipriv2_[6], mpifcmb5_[1], mpifcmb9_[1];
EXPORT char mpiprivc_[2];

#define SENTINEL_TABLE                                                                              \
    SENTINEL(bottom, mpipriv1_, 0),                                                                 \
    SENTINEL(in_place, mpipriv1_, 4),                                                               \
    SENTINEL(status, mpipriv1_, 8),                                                                 \
    SENTINEL(statuses, mpipriv2_, 0),                                                               \
    SENTINEL(errcodes, mpipriv2_, 20),                                                              \
    SENTINEL(argvs, mpiprivc_, 0),                                                                  \
    SENTINEL(argv, mpiprivc_, 1),                                                                   \
    SENTINEL(unweighted, mpifcmb5_, 0),                                                             \
    SENTINEL(empty, mpifcmb9_, 0)
#define COMPARISONS(kind)                                                                           \
    COMPARISON(__mpi_f08_types_MOD_mpi_##kind##_eq, ==)                                             \
    COMPARISON(__mpi_f08_types_MOD_mpi_##kind##_neq, !=)                                            \
    COMPARISON(__mpi_f08_types_MOD_mpi_##kind##_f08_eq_f, ==)                                       \
    COMPARISON(__mpi_f08_types_MOD_mpi_##kind##_f08_neq_f, !=)                                      \
    COMPARISON(__mpi_f08_types_MOD_mpi_##kind##_f_eq_f08, ==)                                       \
    COMPARISON(__mpi_f08_types_MOD_mpi_##kind##_f_neq_f08, !=)
#include "fortran.h"

#include "generated/fortran_calls.h"
