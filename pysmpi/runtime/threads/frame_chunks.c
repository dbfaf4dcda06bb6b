/* Memory for the Python frames of ranks.

   CPython keeps the frames of a thread in chunks of 16 KiB, and greenlet gives each greenlet chunks
   of its own: each rank has touched at least a page of its first one, though it often needs half of
   that while it waits. Here ranks begin with a small chunk, several of which share a page. Deeper
   calls make CPython add an ordinary chunk; a few of those are kept, because a loop may need one in
   each iteration.

   CPython and greenlet free chunks through the arena allocator, which is therefore extended, and
   tell it their size. Arenas and ordinary chunks are larger than the small ones. The allocator is
   called with the interpreter's lock; interpreters with locks of their own (Python 3.12) find it
   busy at times and then use the ordinary one. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && defined(__GNUC__) \
    && !defined(Py_GIL_DISABLED)
#define SMALL_CHUNKS
#endif

#ifdef SMALL_CHUNKS

/* Bytes, with the header: 1 kB for the runtime, 0.5 to 0.9 for a call of MPI, the rest for the
   program. */
#define SMALL 2560
#define ORDINARY 16384
#define KEPT 64 /* ordinary chunks */
#define SLAB (128 * SMALL) /* bytes that are cut into small chunks: whole pages */

typedef struct Slab {
    struct Slab *next;
} Slab;

static PyObjectArenaAllocator usual; /* the allocator that is extended */
static Slab *slabs;                  /* the newest first */
static char *uncut, *end;            /* the part of the newest slab that has not been used yet */
static void *spare;                  /* small chunks that were freed, linked by their first word */
static size_t used;                  /* small chunks that ranks have */
static void *kept[KEPT];
static size_t count; /* of the ordinary chunks that are kept */
static char busy;

static int enter(void) { return !__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE); }

static void leave(void) { __atomic_clear(&busy, __ATOMIC_RELEASE); }

static void *take_small(void)
{
    void *chunk = spare;
    if (chunk != NULL) {
        spare = *(void **)chunk;
    } else {
        if (uncut == end) {
            Slab *slab = usual.alloc(usual.ctx, SLAB);
            if (slab == NULL)
                return NULL;
            slab->next = slabs;
            slabs = slab;
            uncut = (char *)slab + SMALL; /* the header takes the first one */
            end = (char *)slab + SLAB;
        }
        chunk = uncut;
        uncut += SMALL;
    }
    used++;
    return chunk;
}

static void give_small(void *chunk)
{
    *(void **)chunk = spare;
    spare = chunk;
    if (--used > 0 || slabs == NULL)
        return;
    /* The last rank has ended: keep one slab for the next run. */
    while (slabs->next != NULL) {
        Slab *slab = slabs;
        slabs = slab->next;
        usual.free(usual.ctx, slab, SLAB);
    }
    spare = NULL;
    uncut = (char *)slabs + SMALL;
    end = (char *)slabs + SLAB;
}

static void *chunk_alloc(void *context, size_t size)
{
    void *chunk = NULL;
    if (size == ORDINARY && enter()) {
        if (count > 0)
            chunk = kept[--count];
        leave();
    }
    return chunk != NULL ? chunk : usual.alloc(usual.ctx, size);
}

static void chunk_free(void *context, void *address, size_t size)
{
    if (size == SMALL) {
        while (!enter())
            ;
        give_small(address);
        leave();
        return;
    }
    if (size == ORDINARY && enter()) {
        if (count < KEPT) {
            kept[count++] = address;
            address = NULL;
        }
        leave();
    }
    if (address != NULL)
        usual.free(usual.ctx, address, size);
}

static void lay(PyThreadState *state)
{
    _PyStackChunk *chunk = NULL;
    if (enter()) {
        chunk = take_small();
        leave();
    }
    if (chunk == NULL)
        return;
    chunk->previous = NULL;
    chunk->size = SMALL;
    chunk->top = 0;
    state->datastack_chunk = chunk;
    /* CPython leaves the first word of a first chunk free: it frees a chunk with its first frame. */
    state->datastack_top = &chunk->data[1];
    state->datastack_limit = (PyObject **)((char *)chunk + SMALL);
}

#endif

PyDoc_STRVAR(begin_doc,
"begin(body, *arguments): call `body(*arguments)` in a greenlet that has no frame yet.\n\n"
"Its first frames are in a small chunk of memory. There is no frame of this function.");

static PyObject *begin(PyObject *module, PyObject *const *arguments, Py_ssize_t number)
{
    if (number < 1) {
        PyErr_SetString(PyExc_TypeError, "begin() needs a function to call");
        return NULL;
    }
#ifdef SMALL_CHUNKS
    PyThreadState *state = PyThreadState_Get();
    if (state->datastack_chunk == NULL)
        lay(state);
#endif
    /* Without anything after it, this call takes no C stack, which each switch would copy. */
    return PyObject_Vectorcall(arguments[0], arguments + 1, number - 1, NULL);
}

static PyObject *small(PyObject *module, PyObject *unused)
{
#ifdef SMALL_CHUNKS
    return PyLong_FromSize_t(used);
#else
    Py_RETURN_NONE;
#endif
}

static PyMethodDef methods[] = {
    {"begin", (PyCFunction)(void (*)(void))begin, METH_FASTCALL, begin_doc},
    {"small", small, METH_NOARGS,
     "small(): the number of small chunks in use, None if there are none in this Python."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "frame_chunks", "Memory for the Python frames of ranks.", -1, methods,
};

PyMODINIT_FUNC PyInit_frame_chunks(void)
{
#ifdef SMALL_CHUNKS
    if (usual.alloc == NULL) {
        PyObjectArenaAllocator extended = {NULL, chunk_alloc, chunk_free};
        PyObject_GetArenaAllocator(&usual);
        PyObject_SetArenaAllocator(&extended);
    }
#endif
    return PyModule_Create(&definition);
}
