/* Arguments and results of one binary interface, with its tables and its handles. */

#ifdef SAME_CONSTANTS /* MPICH's */
#define ROLE(name, in, out)                                                                        \
    static inline int in_##name(int value) { return value; }                                       \
    static inline int out_##name(int value) { return value; }
#else
#define ROLE(name, in, out)                                                                        \
    static inline int in_##name(int value) { return in(name##_pairs, value); }                     \
    static inline int out_##name(int value) { return out(name##_pairs, value); }
#endif
ROLE(rank, to_mpich, from_mpich)
ROLE(tag, to_mpich, from_mpich)
ROLE(keyval, to_mpich, from_mpich)
ROLE(thread, to_mpich, from_mpich)
ROLE(lock, to_mpich, from_mpich)
ROLE(whence, to_mpich, from_mpich)
ROLE(order, to_mpich, from_mpich)
ROLE(distribution, to_mpich, from_mpich)
ROLE(darg, to_mpich, from_mpich)
ROLE(typeclass, to_mpich, from_mpich)
ROLE(split, to_mpich, from_mpich)
ROLE(combiner, to_mpich, from_mpich)
ROLE(comparison, to_mpich, from_mpich)
ROLE(topology, to_mpich, from_mpich)
ROLE(flavor, to_mpich, from_mpich)
ROLE(model, to_mpich, from_mpich)
ROLE(displacement, to_mpich, from_mpich)
ROLE(assert, bits_to_mpich, bits_from_mpich)
ROLE(mode, bits_to_mpich, bits_from_mpich)

#define OTHER 15    /* MPICH's ERR_OTHER */
#define CLASSES 128 /* MPICH's error classes are less, codes of programs greater */

static inline int
in_error(int value)
{
#ifdef SAME_CONSTANTS
    return value;
#else
    return value == 0 ? 0 : to_mpich(error_pairs, value);
#endif
}

static inline int
out_error(int value)
{
#ifdef SAME_CONSTANTS
    return value;
#else
    if (value == 0)
        return 0;
    const int own = from_mpich(error_pairs, value);
    for (const psm_pair *pair = error_pairs; value < CLASSES && own == value; pair++) {
        if (pair->mpich == value)
            break;
        if (pair->mpich == UNSET_INTEGER)
            return from_mpich(error_pairs, OTHER);
    }
    return own;
#endif
}

/* Statuses. */

#ifndef OWN_COUNTS /* a status has MPICH's two integers for the count */
static inline void
status_count_in(const STATUS *own, psm_status *status)
{
    status->low = own->low;
    status->high = own->high;
}

static inline void
status_count_out(STATUS *own, const psm_status *status)
{
    own->low = status->low;
    own->high = status->high;
}
#endif

static void
status_in(const STATUS *own, psm_status *status)
{
    status->source = in_rank(own->source);
    status->tag = in_tag(own->tag);
    status->error = in_error(own->error);
    status_count_in(own, status);
}

static void
status_out(STATUS *own, const psm_status *status)
{
    own->source = out_rank(status->source);
    own->tag = out_tag(status->tag);
    own->error = out_error(status->error);
    status_count_out(own, status);
}

/* Attributes. */

#define KEY_HOST 0x64400003
#define KEY_IO 0x64400005
#define KEY_LASTUSEDCODE 0x6440000b
#define KEY_WIN_BASE 0x66000001
#define KEY_WIN_SIZE 0x66000003
#define KEY_FLAVOR 0x66000007
#define KEY_MODEL 0x66000009

/* Whether a key is one of MPI's own. */
static inline int
predefined(int key)
{
    return (key & ~0x1f) == 0x64400000 || (key & ~0x1f) == 0x66000000;
}

/* The integer that a predefined attribute of MPICH points to, in this interface. */
static int
attribute(int key, int value)
{
    switch (key) {
    case KEY_HOST:
    case KEY_IO:
        return out_rank(value);
    case KEY_LASTUSEDCODE:
        return out_error(value);
    case KEY_FLAVOR:
        return out_flavor(value);
    case KEY_MODEL:
        return out_model(value);
    default:
        return value;
    }
}

static inline void
c_attribute(void *result, int key, void *value)
{
    if (predefined(key) && key != KEY_WIN_BASE && key != KEY_WIN_SIZE) {
        const int own = attribute(key, *(int *)value);
        if (own != *(int *)value)
            value = integer_at(own);
    }
    *(void **)result = value;
}

/* Further results. */

/* The constants among the integers with which a datatype was made. */
static void
contents_out(long long datatype, int *integers, void *site)
{
    int count = 0, addresses = 0, types = 0, combiner = 0;
    const long long values[] = {datatype, (intptr_t)&count, (intptr_t)&addresses, (intptr_t)&types,
                                (intptr_t)&combiner, 0};
    if (core->call(PSM_Type_get_envelope, values, site) != 0)
        return;
    if (combiner == 13) { /* SUBARRAY */
        int *order = &integers[3 * integers[0] + 1];
        *order = out_order(*order);
    } else if (combiner == 14) { /* DARRAY */
        const int n = integers[2];
        for (int i = 3 + n; i < 3 + 2 * n; i++)
            integers[i] = out_distribution(integers[i]);
        for (int i = 3 + 2 * n; i < 3 + 3 * n; i++)
            integers[i] = out_darg(integers[i]);
        integers[3 + 4 * n] = out_order(integers[3 + 4 * n]);
    }
}

/* Functions of the program, which the engine calls with MPICH's arguments. */

static long long
adapted(psm_adapter *adapter, void *function)
{
    return function == NULL || adapter == NULL ? 0 : (intptr_t)core->closure(adapter, function);
}

#ifndef FORTRAN_ALONE

#define COPY_ADAPTER(type, kind)                                                                   \
    static long long c_##type(void *function, const long long *a)                                  \
    {                                                                                              \
        int (*copy)(HANDLE, int, long long, long long, long long, long long) = function;           \
        return in_error(copy(c_out(kind, (uint32_t)a[0]), out_keyval((int)a[1]), a[2], a[3], a[4], \
                             a[5]));                                                               \
    }
COPY_ADAPTER(Copy_function, 'C')
COPY_ADAPTER(Comm_copy_attr_function, 'C')
COPY_ADAPTER(Type_copy_attr_function, 'D')
COPY_ADAPTER(Win_copy_attr_function, 'W')

#define DELETE_ADAPTER(type, kind)                                                                 \
    static long long c_##type(void *function, const long long *a)                                  \
    {                                                                                              \
        int (*delete)(HANDLE, int, long long, long long) = function;                               \
        return in_error(delete(c_out(kind, (uint32_t)a[0]), out_keyval((int)a[1]), a[2], a[3]));   \
    }
DELETE_ADAPTER(Delete_function, 'C')
DELETE_ADAPTER(Comm_delete_attr_function, 'C')
DELETE_ADAPTER(Type_delete_attr_function, 'D')
DELETE_ADAPTER(Win_delete_attr_function, 'W')

#define ERROR_ADAPTER(type, kind)                                                                  \
    static long long c_##type(void *function, const long long *a)                                  \
    {                                                                                              \
        void (*handle)(HANDLE *, int *, ...) = function;                                           \
        HANDLE object = c_out(kind, *(uint32_t *)a[0]);                                            \
        int code = out_error(*(int *)a[1]);                                                        \
        handle(&object, &code);                                                                    \
        return 0;                                                                                  \
    }
ERROR_ADAPTER(Comm_errhandler_function, 'C')
ERROR_ADAPTER(Win_errhandler_function, 'W')
ERROR_ADAPTER(File_errhandler_function, 'F')
ERROR_ADAPTER(Session_errhandler_function, 'S')

static long long
c_User_function(void *function, const long long *a)
{
    void (*reduce)(long long, long long, long long, HANDLE *) = function;
    HANDLE datatype = c_out('D', *(uint32_t *)a[3]);
    reduce(a[0], a[1], a[2], &datatype);
    return 0;
}
#define c_User_function_c c_User_function

static long long
c_Grequest_query_function(void *function, const long long *a)
{
    int (*query)(long long, STATUS *) = function;
    psm_status *status = (psm_status *)a[1];
    STATUS own;
    status_out(&own, status);
    const int code = query(a[0], &own);
    status_in(&own, status);
    return in_error(code);
}

static long long
c_Grequest_free_function(void *function, const long long *a)
{
    return in_error(((int (*)(long long))function)(a[0]));
}

static long long
c_Grequest_cancel_function(void *function, const long long *a)
{
    return in_error(((int (*)(long long, int))function)(a[0], (int)a[1]));
}

static long long
c_Datarep_conversion_function(void *function, const long long *a)
{
    int (*convert)(long long, HANDLE, long long, long long, long long, long long) = function;
    return in_error(convert(a[0], c_out('D', (uint32_t)a[1]), a[2], a[3], a[4], a[5]));
}
#define c_Datarep_conversion_function_c c_Datarep_conversion_function

static long long
c_Datarep_extent_function(void *function, const long long *a)
{
    int (*extent)(HANDLE, long long, long long) = function;
    return in_error(extent(c_out('D', (uint32_t)a[0]), a[1], a[2]));
}

/* There are no events. */
#define c_T_event_cb_function NULL
#define c_T_event_free_cb_function NULL
#define c_T_event_dropped_cb_function NULL

static void
c_store(const char *text, char *result, size_t limit, int *length)
{
    if (*text == 1) /* the function has failed */
        return;
    const size_t size = strnlen(text, limit - 1);
    memcpy(result, text, size);
    result[size] = 0;
    if (length != NULL)
        *length = (int)size;
}

#endif
