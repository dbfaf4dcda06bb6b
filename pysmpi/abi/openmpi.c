/* Open MPI's binary interface (libmpi.so.40), in C and in Fortran.

   Predefined handles are addresses of objects. An executable has copies of those that it names, so an
   object holds what it stands for, and results are the addresses that the program knows. Other handles
   are MPICH's integers, which are less than any address of a program. */

#include <stddef.h>
#include <unistd.h>

#include "family.h"

#define PSM_MAGIC 0x69706d736d70ULL /* "psmpi" */

typedef struct {
    uint64_t magic;
    uint64_t number;
} psm_object;

#include "generated/openmpi_tables.h"

typedef void *HANDLE;
typedef struct {
    int source, tag, error, cancelled;
    size_t count;
} __attribute__((packed, aligned(4))) STATUS; /* in Fortran, an array of integers */

#define ADDRESSES_SLOT 0
#define FORTRAN_SLOT 1

void
psm_attach(const psm_core *engine)
{
    core = engine;
    fill_buckets(handles, HANDLES_COUNT);
}

/* Predefined handles of the program that runs, in the order of the table. */
static HANDLE *
addresses(void)
{
    static HANDLE shared[HANDLES_COUNT];
    void **slot = core->slot(ADDRESSES_SLOT);
    HANDLE *result = slot != NULL ? *slot : shared;
    if (result != NULL && result[0] != NULL)
        return result;
    if (result == NULL && (*slot = result = calloc(HANDLES_COUNT, sizeof *result)) == NULL)
        abort();
    void *library = slot != NULL ? core->library() : NULL;
    for (int i = 0; i < HANDLES_COUNT; i++) {
        result[i] = library != NULL ? dlsym(library, handles[i].name) : NULL;
        if (result[i] == NULL)
            result[i] = handles[i].value;
    }
    return result;
}

static inline long long
c_in(char kind, HANDLE handle)
{
    if ((uintptr_t)handle >> 32 == 0)
        return (long long)(uintptr_t)handle;
    const psm_object *object = handle;
    (void)kind;
    return object->magic == PSM_MAGIC ? (long long)object->number : 0xffffffff;
}

static inline HANDLE
c_out(char kind, uint32_t number)
{
    const int at = find_handle(handles, kind, number);
    return at >= 0 ? addresses()[at] : (HANDLE)(uintptr_t)number;
}

#define FORTRAN_INTEGERS 100 /* of predefined handles are less */

static long long
f_in(char kind, int value)
{
    if ((unsigned)value < FORTRAN_INTEGERS)
        for (int i = 0; i < HANDLES_COUNT; i++)
            if (handles[i].kind == kind && handles[i].fortran == value)
                return handles[i].number;
    return (uint32_t)value;
}

static int
f_out(char kind, uint32_t number)
{
    const int at = find_handle(handles, kind, number);
    return at >= 0 && handles[at].fortran >= 0 ? handles[at].fortran : (int)number;
}

#define OWN_COUNTS /* see roles.h */
static inline void
status_count_in(const STATUS *own, psm_status *status)
{
    status->low = (int)(own->count & 0xffffffff);
    status->high = (int)(own->count >> 32 << 1) | (own->cancelled != 0);
}

static inline void
status_count_out(STATUS *own, const psm_status *status)
{
    own->cancelled = status->high & 1;
    own->count = (size_t)((unsigned)status->high >> 1) << 32 | (unsigned)status->low;
}

/* For handles in the objects of mpi4py. */
EXPORT uint32_t psm_into(char kind, HANDLE handle) { return (uint32_t)c_in(kind, handle); }
EXPORT HANDLE psm_out(char kind, uint32_t number) { return c_out(kind, number); }
EXPORT uint32_t psm_fortran_into(char kind, int handle) { return (uint32_t)f_in(kind, handle); }
EXPORT int psm_fortran_out(char kind, uint32_t number) { return f_out(kind, number); }

#include "roles.h"

#define IGNORED_c(status) ((status) == NULL)
#define ERRCODES_c(codes) (codes)
#define IS_IN_PLACE_c(buffer) ((buffer) == (void *)1)
#define c_buffer(buffer) ((buffer) == (void *)1 ? MPICH_IN_PLACE : (intptr_t)(buffer))
#define out_buffer(buffer) (buffer)
#define c_weights(weights)                                                                         \
    ((weights) == (int *)2 ? (intptr_t)core->unweighted                                            \
     : (weights) == (int *)3 ? (intptr_t)core->empty                                               \
                             : (intptr_t)(weights))
#define ADAPTED_c(type, function) adapted(c_##type, function)

#define C_FUNCTIONS(prefix)                                                                        \
    EXPORT int OMPI_C_MPI_##prefix##NULL_COPY_FN(HANDLE object, int key, void *state, void *value, \
                                                 void *result, int *flag)                          \
    {                                                                                              \
        *flag = 0;                                                                                 \
        return 0;                                                                                  \
    }                                                                                              \
    EXPORT int OMPI_C_MPI_##prefix##DUP_FN(HANDLE object, int key, void *state, void *value,       \
                                           void *result, int *flag)                                \
    {                                                                                              \
        *(void **)result = value;                                                                  \
        *flag = 1;                                                                                 \
        return 0;                                                                                  \
    }                                                                                              \
    EXPORT int OMPI_C_MPI_##prefix##NULL_DELETE_FN(HANDLE object, int key, void *value,            \
                                                   void *state)                                    \
    {                                                                                              \
        return 0;                                                                                  \
    }
C_FUNCTIONS()
C_FUNCTIONS(COMM_)
C_FUNCTIONS(TYPE_)
C_FUNCTIONS(WIN_)

#include "generated/c_calls.h"

/* Common blocks of Fortran. */
EXPORT int mpi_fortran_bottom_[1], mpi_fortran_in_place_[1], mpi_fortran_errcodes_ignore_[1];
EXPORT int mpi_fortran_status_ignore_[6], mpi_fortran_statuses_ignore_[6];
EXPORT int mpi_fortran_unweighted_[1], mpi_fortran_weights_empty_[1];
EXPORT char mpi_fortran_argv_null_[1], mpi_fortran_argvs_null_[1];
EXPORT int *MPI_F_STATUS_IGNORE = mpi_fortran_status_ignore_;
EXPORT int *MPI_F_STATUSES_IGNORE = mpi_fortran_statuses_ignore_;
EXPORT void *MPI_F08_STATUS_IGNORE = mpi_fortran_status_ignore_;
EXPORT void *MPI_F08_STATUSES_IGNORE = mpi_fortran_statuses_ignore_;

#define SENTINEL_TABLE                                                                              \
    SENTINEL(bottom, mpi_fortran_bottom_, 0),                                                       \
    SENTINEL(in_place, mpi_fortran_in_place_, 0),                                                   \
    SENTINEL(status, mpi_fortran_status_ignore_, 0),                                                \
    SENTINEL(statuses, mpi_fortran_statuses_ignore_, 0),                                            \
    SENTINEL(errcodes, mpi_fortran_errcodes_ignore_, 0),                                            \
    SENTINEL(argv, mpi_fortran_argv_null_, 0),                                                      \
    SENTINEL(argvs, mpi_fortran_argvs_null_, 0),                                                    \
    SENTINEL(unweighted, mpi_fortran_unweighted_, 0),                                               \
    SENTINEL(empty, mpi_fortran_weights_empty_, 0)
#define COMPARISONS(kind)                                                                           \
    COMPARISON(__mpi_f08_types_MOD_ompi_##kind##_op_eq, ==)                                         \
    COMPARISON(__mpi_f08_types_MOD_ompi_##kind##_op_ne, !=)
#include "fortran.h"

#include "generated/fortran_calls.h"

/* Of Open MPI's own functions and variables, those that its library for C++ (libmpi_cxx.so.40) names.
   Libraries in C++ are linked with it, although few use MPI-2's classes. These call C's functions;
   only their callbacks need more. */

#define COMM_WORLD 0x44000000 /* in MPICH */

EXPORT int ompi_errcode_intern_lastused, opal_class_init_epoch = 1;
EXPORT char opal_uses_threads;
EXPORT long long ompi_errcodes_intern[16], ompi_registered_datareps[8], opal_list_item_t_class[8];
EXPORT psm_object ompi_mpi_errors_throw_exceptions = {PSM_MAGIC, 0x54000001}; /* MPI_ERRORS_RETURN */

static int
no_callback(void *site)
{
    static const char text[] = "pysmpi: error: callbacks of MPI's C++ classes (MPI::Op, error handlers, "
                               "attributes) cannot be simulated: use the functions of C\n";
    if (write(2, text, sizeof text - 1) < 0)
        return -1;
    return (int)core_call(PSM_Abort, site, COMM_WORLD, 1, 0, 0);
}
EXPORT int ompi_op_set_cxx_callback(void *op, void *function) { return no_callback(SITE); }
EXPORT int ompi_attr_create_keyval(void) { return no_callback(SITE); }
EXPORT void *ompi_errhandler_create(void) { return (void *)(intptr_t)no_callback(SITE); }
EXPORT int ompi_errhandler_invoke(void) { return no_callback(SITE); }
EXPORT void opal_class_initialize(void *class) { no_callback(SITE); }
