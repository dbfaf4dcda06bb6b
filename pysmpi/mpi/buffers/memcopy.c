/* Copies of large blocks with stores that Python cannot ask for.

   A store to memory that is not in the cache first reads it, and later evicts other data. If the
   ranks together receive more than the cache holds, both are for nothing: a non-temporal store does
   neither, and a copy takes about half of the time.

   The C library does so only for single blocks of many megabytes. Below, it often copies with one
   instruction (rep movsb), which on AMD's processors takes up to twice as long if the addresses are
   not aligned in the same way. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define VECTOR 32 /* bytes: the alignment that matters to rep movsb */

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>

#define LINE 64    /* bytes of a line of the cache, which is written as a whole */
#define AHEAD 2048 /* bytes that the reads are ahead of the stores */

/* Two copies, because the compiler must know the kind of store. */
#define COPY_LINES(name, store)                                                                    \
    static size_t name(char *target, const char *source, size_t lines)                             \
    {                                                                                              \
        for (size_t i = 0; i < lines * LINE; i += LINE) {                                          \
            _mm_prefetch(source + i + AHEAD, _MM_HINT_T0);                                         \
            __m128i a = _mm_loadu_si128((const __m128i *)(source + i));                            \
            __m128i b = _mm_loadu_si128((const __m128i *)(source + i + 16));                       \
            __m128i c = _mm_loadu_si128((const __m128i *)(source + i + 32));                       \
            __m128i d = _mm_loadu_si128((const __m128i *)(source + i + 48));                       \
            store((__m128i *)(target + i), a);                                                     \
            store((__m128i *)(target + i + 16), b);                                                \
            store((__m128i *)(target + i + 32), c);                                                \
            store((__m128i *)(target + i + 48), d);                                                \
        }                                                                                          \
        return lines * LINE;                                                                       \
    }

COPY_LINES(copy_past_cache, _mm_stream_si128)
COPY_LINES(copy_to_cache, _mm_store_si128)

static void copy_block(char *target, const char *source, size_t size, int past_cache)
{
    size_t head = -(uintptr_t)target % LINE;
    if (head > size)
        head = size;
    memcpy(target, source, head);
    size_t lines = (size - head) / LINE, done = head;
    if (past_cache) {
        done += copy_past_cache(target + head, source + head, lines);
        _mm_sfence();
    } else {
        done += copy_to_cache(target + head, source + head, lines);
    }
    memcpy(target + done, source + done, size - done);
}
#else
static void copy_block(char *target, const char *source, size_t size, int past_cache)
{
    memcpy(target, source, size);
}
#endif

static void copy_bytes(char *target, const char *source, size_t size, int past_cache)
{
    uintptr_t apart = (uintptr_t)target - (uintptr_t)source;
    if (apart < size || -apart < size)
        memmove(target, source, size); /* they overlap */
    else if (past_cache || apart % VECTOR)
        copy_block(target, source, size, past_cache);
    else
        memcpy(target, source, size);
}

static PyObject *copy(PyObject *module, PyObject *const *args, Py_ssize_t number)
{
    Py_buffer target, source;
    if (number != 3) {
        PyErr_SetString(PyExc_TypeError, "copy() takes 3 arguments");
        return NULL;
    }
    int past_cache = PyObject_IsTrue(args[2]);
    if (past_cache < 0 || PyObject_GetBuffer(args[0], &target, PyBUF_WRITABLE))
        return NULL;
    if (PyObject_GetBuffer(args[1], &source, PyBUF_SIMPLE)) {
        PyBuffer_Release(&target);
        return NULL;
    }
    int equal = target.len == source.len;
    if (equal)
        copy_bytes(target.buf, source.buf, (size_t)source.len, past_cache);
    else
        PyErr_Format(PyExc_ValueError, "cannot copy %zd bytes to a buffer of %zd", source.len,
                     target.len);
    PyBuffer_Release(&source);
    PyBuffer_Release(&target);
    if (!equal)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL,
     "copy(target, source, past_cache): copy a contiguous buffer to another of the same size.\n\n"
     "With `past_cache` the copy does not get into the cache of the processor."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "memcopy", "Copies of large blocks.", -1, methods,
};

PyMODINIT_FUNC PyInit_memcopy(void) { return PyModule_Create(&definition); }
