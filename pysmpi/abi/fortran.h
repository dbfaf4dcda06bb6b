/* What the entry points of Fortran need: arguments by reference, strings with lengths, and constants
   that are addresses of common blocks, of which each program has its own. */

typedef int FINT;

typedef struct {
    void *bottom, *in_place, *status, *statuses, *errcodes, *argv, *argvs, *unweighted, *empty;
} psm_sentinels;

/* Offsets are of variables in a common block. */
#define SENTINEL(member, block, offset) {offsetof(psm_sentinels, member), #block, block, offset}

static const struct {
    size_t member;
    const char *name;
    void *own;
    size_t offset;
} SENTINELS[] = {SENTINEL_TABLE};

static const psm_sentinels *
sentinels(void)
{
    static psm_sentinels shared;
    void **slot = core->slot(FORTRAN_SLOT);
    psm_sentinels *result = slot != NULL ? *slot : &shared;
    if (result != NULL && result->bottom != NULL)
        return result;
    if (result == NULL && (*slot = result = calloc(1, sizeof *result)) == NULL)
        abort();
    void *library = slot != NULL ? core->library() : NULL;
    for (size_t i = 0; i < sizeof SENTINELS / sizeof *SENTINELS; i++) {
        char *block = library != NULL ? dlsym(library, SENTINELS[i].name) : NULL;
        if (block == NULL)
            block = SENTINELS[i].own;
        *(void **)((char *)result + SENTINELS[i].member) = block + SENTINELS[i].offset;
    }
    return result;
}

static inline long long
f_buffer(void *buffer)
{
    const psm_sentinels *constants = sentinels();
    if (buffer == constants->bottom)
        return 0;
    if (buffer == constants->in_place)
        return MPICH_IN_PLACE;
    return (intptr_t)buffer;
}
#define IS_IN_PLACE_f(buffer) ((buffer) == sentinels()->in_place)

static inline int
IGNORED_f(const void *status)
{
    const psm_sentinels *constants = sentinels();
    return status == constants->status || status == constants->statuses || status == NULL;
}

static inline long long
f_weights(void *weights)
{
    const psm_sentinels *constants = sentinels();
    if (weights == constants->unweighted)
        return (intptr_t)core->unweighted;
    if (weights == constants->empty)
        return (intptr_t)core->empty;
    return (intptr_t)weights;
}

#define ERRCODES_f(codes) ((void *)(codes) == sentinels()->errcodes ? NULL : (codes))

/* Strings. */

static char *
f_text(const char *text, size_t length, char *result)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    memcpy(result, text, length);
    result[length] = 0;
    return result;
}

/* Keys and values of infos lose leading blanks too. */
static char *
f_word(const char *text, size_t length, char *result)
{
    while (length > 0 && *text == ' ') {
        text++;
        length--;
    }
    return f_text(text, length, result);
}

static void
f_store(const char *text, char *result, size_t limit, int *length)
{
    if (*text == 1) /* the function has failed, or has no result */
        return;
    const size_t size = strnlen(text, limit);
    memcpy(result, text, size);
    memset(result + size, ' ', limit - size);
    if (length != NULL)
        *length = (int)size;
}

static int
blank(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return length == 0;
}

/* The words at `text`, `text + step`, ..., `count` of them or up to a blank one (-1). */
static char **
f_list(const char *text, size_t length, size_t step, int count)
{
    size_t n = 0;
    while (count >= 0 ? n < (size_t)count : !blank(text + n * step, length))
        n++;
    char **result = malloc((n + 1) * sizeof *result + n * (length + 1));
    if (result == NULL)
        return NULL;
    char *at = (char *)(result + n + 1);
    for (size_t i = 0; i < n; i++, at += length + 1)
        result[i] = f_text(text + i * step, length, at);
    result[n] = NULL;
    return result;
}

/* Arguments of a command (0), several commands (1), or the arguments of several commands (2). */
static void *
f_words(const char *text, size_t length, int several, int form)
{
    const psm_sentinels *constants = sentinels();
    if (text == constants->argv || text == constants->argvs)
        return NULL;
    if (form == 0)
        return f_list(text, length, length, -1);
    if (form == 1)
        return f_list(text, length, length, several);
    char ***result = calloc((size_t)several + 1, sizeof *result);
    for (int i = 0; result != NULL && i < several; i++)
        result[i] = f_list(text + (size_t)i * length, length, (size_t)several * length, -1);
    return result;
}

/* Attributes. */

static void
f_attribute(void *result, int key, void *value)
{
    long own = (long)(intptr_t)value;
    if (predefined(key) && key != KEY_WIN_BASE)
        own = key == KEY_WIN_SIZE ? *(long *)value : attribute(key, *(int *)value);
    *(long *)result = own;
}

static void
f_attribute_old(void *result, int key, void *value)
{
    long own;
    f_attribute(&own, key, value);
    *(int *)result = (int)own;
}

/* Functions of the program. */

#define F_COPY_ADAPTER(type, kind, integer)                                                        \
    static long long f_##type(void *function, const long long *a)                                  \
    {                                                                                              \
        void (*copy)(int *, int *, integer *, integer *, integer *, int *, int *) = function;      \
        int object = f_out(kind, (uint32_t)a[0]), key = out_keyval((int)a[1]), error = 0;          \
        integer state = (integer)a[2], value = (integer)a[3], result = 0;                          \
        copy(&object, &key, &state, &value, &result, (int *)a[5], &error);                         \
        *(long *)a[4] = (long)result;                                                              \
        return in_error(error);                                                                    \
    }
F_COPY_ADAPTER(Copy_function, 'C', int)
F_COPY_ADAPTER(Comm_copy_attr_function, 'C', long)
F_COPY_ADAPTER(Type_copy_attr_function, 'D', long)
F_COPY_ADAPTER(Win_copy_attr_function, 'W', long)

#define F_DELETE_ADAPTER(type, kind, integer)                                                      \
    static long long f_##type(void *function, const long long *a)                                  \
    {                                                                                              \
        void (*delete)(int *, int *, integer *, integer *, int *) = function;                      \
        int object = f_out(kind, (uint32_t)a[0]), key = out_keyval((int)a[1]), error = 0;          \
        integer value = (integer)a[2], state = (integer)a[3];                                      \
        delete(&object, &key, &value, &state, &error);                                             \
        return in_error(error);                                                                    \
    }
F_DELETE_ADAPTER(Delete_function, 'C', int)
F_DELETE_ADAPTER(Comm_delete_attr_function, 'C', long)
F_DELETE_ADAPTER(Type_delete_attr_function, 'D', long)
F_DELETE_ADAPTER(Win_delete_attr_function, 'W', long)

#define F_ERROR_ADAPTER(type, kind)                                                                \
    static long long f_##type(void *function, const long long *a)                                  \
    {                                                                                              \
        void (*handle)(int *, int *) = function;                                                   \
        int object = f_out(kind, *(uint32_t *)a[0]), code = out_error(*(int *)a[1]);               \
        handle(&object, &code);                                                                    \
        return 0;                                                                                  \
    }
F_ERROR_ADAPTER(Comm_errhandler_function, 'C')
F_ERROR_ADAPTER(Win_errhandler_function, 'W')
F_ERROR_ADAPTER(File_errhandler_function, 'F')
F_ERROR_ADAPTER(Session_errhandler_function, 'S')

static long long
f_User_function(void *function, const long long *a)
{
    int datatype = f_out('D', *(uint32_t *)a[3]);
    ((void (*)(long long, long long, long long, int *))function)(a[0], a[1], a[2], &datatype);
    return 0;
}

static long long
f_Grequest_query_function(void *function, const long long *a)
{
    long state = (long)a[0];
    psm_status *status = (psm_status *)a[1];
    STATUS own;
    int error = 0;
    status_out(&own, status);
    ((void (*)(long *, STATUS *, int *))function)(&state, &own, &error);
    status_in(&own, status);
    return in_error(error);
}

static long long
f_Grequest_free_function(void *function, const long long *a)
{
    long state = (long)a[0];
    int error = 0;
    ((void (*)(long *, int *))function)(&state, &error);
    return in_error(error);
}

static long long
f_Grequest_cancel_function(void *function, const long long *a)
{
    long state = (long)a[0];
    int complete = (int)a[1], error = 0;
    ((void (*)(long *, int *, int *))function)(&state, &complete, &error);
    return in_error(error);
}

static long long
f_Datarep_conversion_function(void *function, const long long *a)
{
    void (*convert)(long long, int *, int *, long long, long *, long *, int *) = function;
    int datatype = f_out('D', (uint32_t)a[1]), count = (int)a[2], error = 0;
    long position = (long)a[4], state = (long)a[5];
    convert(a[0], &datatype, &count, a[3], &position, &state, &error);
    return in_error(error);
}

static long long
f_Datarep_extent_function(void *function, const long long *a)
{
    int datatype = f_out('D', (uint32_t)a[0]), error = 0;
    long state = (long)a[2];
    ((void (*)(int *, long *, long *, int *))function)(&datatype, (long *)a[1], &state, &error);
    return in_error(error);
}

EXPORT void mpi_conversion_fn_null_(void) {}
#define ADAPTED_f(type, function)                                                                  \
    ((function) == (void *)mpi_conversion_fn_null_ ? 0 : adapted(f_##type, function))

/* The copy and delete functions that MPI has. */

#define PREDEFINED_FUNCTIONS(prefix, integer)                                                      \
    EXPORT void mpi_##prefix##null_copy_fn_(int *object, int *key, integer *state, integer *value, \
                                            integer *result, int *flag, int *error)                \
    {                                                                                              \
        *flag = 0;                                                                                 \
        *error = 0;                                                                                \
    }                                                                                              \
    EXPORT void mpi_##prefix##dup_fn_(int *object, int *key, integer *state, integer *value,       \
                                      integer *result, int *flag, int *error)                      \
    {                                                                                              \
        *result = *value;                                                                          \
        *flag = 1;                                                                                 \
        *error = 0;                                                                                \
    }                                                                                              \
    EXPORT void mpi_##prefix##null_delete_fn_(int *object, int *key, integer *value,               \
                                              integer *state, int *error)                          \
    {                                                                                              \
        *error = 0;                                                                                \
    }
PREDEFINED_FUNCTIONS(, int)
PREDEFINED_FUNCTIONS(comm_, long)
PREDEFINED_FUNCTIONS(type_, long)
PREDEFINED_FUNCTIONS(win_, long)

/* Comparisons of handles in the library's own module mpi_f08: both sides are integers there. */
#define COMPARISON(name, sign)                                                                     \
    EXPORT int name(const int *a, const int *b)                                                    \
    {                                                                                              \
        return *a sign *b;                                                                         \
    }
COMPARISONS(comm)
COMPARISONS(datatype)
COMPARISONS(errhandler)
COMPARISONS(file)
COMPARISONS(group)
COMPARISONS(info)
COMPARISONS(message)
COMPARISONS(op)
COMPARISONS(request)
COMPARISONS(session)
COMPARISONS(win)
