/* The functions that numpy calls for the data of the arrays of ranks (NEP 49).

   numpy frees arrays while an exception propagates, and no Python function may run then. These
   functions therefore call no Python: small allocations go directly to numpy's own allocator, large
   ones to a function of pysmpi, and a freed folded array is noted in a queue, which the next large
   allocation empties. numpy calls all of them with the interpreter's lock. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#define QUEUE 65536 /* frees that are noted; of more, arrays count as alive, which does no harm */

typedef void *(*Malloc)(void *, size_t);
typedef void *(*Calloc)(void *, size_t, size_t);
typedef void *(*Realloc)(void *, void *, size_t);
typedef void (*Free)(void *, void *, size_t);

static void *context; /* the first argument of numpy's own functions */
static Malloc own_malloc, large_malloc;
static Calloc own_calloc, large_calloc;
static Realloc own_realloc, folded_realloc;
static Free own_free;
static uintptr_t first, length; /* the addresses of folded arrays */
static uint64_t least = UINT64_MAX; /* bytes of a large allocation */
static struct { uint64_t rank, address; } noted[QUEUE];
static size_t count;

static int folded(void *address) { return (uintptr_t)address - first < length; }

static void *hook_malloc(void *rank, size_t size)
{
    return size >= least ? large_malloc(rank, size) : own_malloc(context, size);
}

static void *hook_calloc(void *rank, size_t number, size_t each)
{
    return (uint64_t)number * each >= least ? large_calloc(rank, number, each)
                                            : own_calloc(context, number, each);
}

static void *hook_realloc(void *rank, void *address, size_t size)
{
    return folded(address) ? folded_realloc(rank, address, size)
                           : own_realloc(context, address, size);
}

static void hook_free(void *rank, void *address, size_t size)
{
    if (!folded(address)) {
        own_free(context, address, size);
    } else if (count < QUEUE) {
        noted[count].rank = (uintptr_t)rank;
        noted[count].address = (uintptr_t)address;
        count++;
    }
}

PyDoc_STRVAR(connect_doc,
"connect(own, large, context, start, stop): the addresses of (malloc, calloc, realloc, free).\n\n"
"`own` are the addresses of these four functions of numpy's allocator, whose first argument is\n"
"`context`; `large` those of malloc, calloc and realloc of pysmpi. Folded arrays have addresses\n"
"from `start` to `stop`.");

static PyObject *connect(PyObject *module, PyObject *args)
{
    unsigned long long own[4], large[3], given, start, stop;
    if (!PyArg_ParseTuple(args, "(KKKK)(KKK)KKK", own, own + 1, own + 2, own + 3, large, large + 1,
                          large + 2, &given, &start, &stop))
        return NULL;
    own_malloc = (Malloc)(uintptr_t)own[0];
    own_calloc = (Calloc)(uintptr_t)own[1];
    own_realloc = (Realloc)(uintptr_t)own[2];
    own_free = (Free)(uintptr_t)own[3];
    large_malloc = (Malloc)(uintptr_t)large[0];
    large_calloc = (Calloc)(uintptr_t)large[1];
    folded_realloc = (Realloc)(uintptr_t)large[2];
    context = (void *)(uintptr_t)given;
    first = (uintptr_t)start;
    length = (uintptr_t)(stop - start);
    return Py_BuildValue("KKKK", (unsigned long long)(uintptr_t)hook_malloc,
                         (unsigned long long)(uintptr_t)hook_calloc,
                         (unsigned long long)(uintptr_t)hook_realloc,
                         (unsigned long long)(uintptr_t)hook_free);
}

static PyObject *offer(PyObject *module, PyObject *bytes)
{
    unsigned long long given = PyLong_AsUnsignedLongLong(bytes);
    if (PyErr_Occurred())
        return NULL;
    least = given;
    Py_RETURN_NONE;
}

static PyObject *freed(PyObject *module, PyObject *unused)
{
    /* Making the list may free other arrays, which are noted after these. */
    size_t known = count;
    PyObject *list = PyList_New((Py_ssize_t)known);
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < known; i++) {
        PyObject *pair = Py_BuildValue("KK", (unsigned long long)noted[i].rank,
                                       (unsigned long long)noted[i].address);
        if (pair == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, pair);
    }
    for (size_t i = known; i < count; i++)
        noted[i - known] = noted[i];
    count -= known;
    return list;
}

static PyMethodDef methods[] = {
    {"connect", connect, METH_VARARGS, connect_doc},
    {"offer", offer, METH_O, "offer(least): give pysmpi allocations of at least `least` bytes."},
    {"freed", freed, METH_NOARGS,
     "freed(): (number of the handler, address) of the arrays freed since the last call."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "hooks", "The functions that numpy calls for the data of arrays.", -1,
    methods,
};

PyMODINIT_FUNC PyInit_hooks(void) { return PyModule_Create(&definition); }
