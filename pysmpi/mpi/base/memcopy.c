/* Copies that Python cannot ask for: of large blocks past the cache, and of strided blocks.

   A store to memory that is not in the cache first reads it, and later evicts other data. If the
   ranks together receive more than the cache holds, both are for nothing: a non-temporal store does
   neither, and a copy takes about half of the time.

   The C library does so only for single blocks of many megabytes. Below, it often copies with one
   instruction (rep movsb), which on AMD's processors takes up to twice as long if the addresses are
   not aligned in the same way.

   The elements of a derived datatype are blocks that are repeated along dimensions. Numpy needs two
   arrays for such a copy, and tests whether they share memory: for the edge of a small block of a
   matrix this takes ten times as long as the copy. */

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

#define MOST_DIMENSIONS 64

/* Blocks in a buffer: their strides in bytes, the outermost first. */
typedef struct {
    Py_buffer buffer;
    char *first;
    const Py_ssize_t *strides;
} Blocks;

#define COPY_ROW(size)                                                                             \
    for (; count > 0; count--, target += to, source += from)                                       \
        memcpy(target, source, size)

static void copy_row(char *target, Py_ssize_t to, const char *source, Py_ssize_t from,
                     Py_ssize_t count, size_t length)
{
    /* With a constant size these are single loads and stores. */
    switch (length) {
    case 1: COPY_ROW(1); break;
    case 2: COPY_ROW(2); break;
    case 4: COPY_ROW(4); break;
    case 8: COPY_ROW(8); break;
    case 16: COPY_ROW(16); break;
    default: COPY_ROW(length);
    }
}

static void copy_dimensions(char *target, const Py_ssize_t *to, const char *source,
                            const Py_ssize_t *from, const Py_ssize_t *counts, int dimensions,
                            size_t length)
{
    if (dimensions == 0)
        memcpy(target, source, length);
    else if (dimensions == 1)
        copy_row(target, *to, source, *from, *counts, length);
    else
        for (Py_ssize_t i = 0; i < *counts; i++)
            copy_dimensions(target + i * *to, to + 1, source + i * *from, from + 1, counts + 1,
                            dimensions - 1, length);
}

/* The integers of a tuple; their number, or -1 with an error. */
static int integers(PyObject *tuple, Py_ssize_t *found)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > MOST_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "expected a tuple of up to %d integers", MOST_DIMENSIONS);
        return -1;
    }
    int number = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; i < number; i++) {
        found[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
        if (found[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return number;
}

/* The bytes from `low` to `high` of a buffer that blocks take; 0 if they are not all inside. */
static int span(const Blocks *blocks, Py_ssize_t first, const Py_ssize_t *counts, int dimensions,
                Py_ssize_t length, char **low, char **high)
{
    Py_ssize_t room = blocks->buffer.len, begin = first, end;
    if (first < 0 || length < 0 || first > room || length > room - first)
        return 0;
    end = first + length;
    for (int i = 0; i < dimensions; i++) {
        Py_ssize_t stride = blocks->strides[i], steps = counts[i] - 1;
        if (stride == 0 || steps == 0)
            continue;
        if (stride < 0 ? steps > begin / -stride : steps > (room - end) / stride)
            return 0;
        if (stride < 0)
            begin += steps * stride;
        else
            end += steps * stride;
    }
    *low = (char *)blocks->buffer.buf + begin;
    *high = (char *)blocks->buffer.buf + end;
    return 1;
}

/* Copy blocks that share memory with those that are written: -1 with an error without memory. */
static int copy_apart(Blocks *target, Blocks *source, const Py_ssize_t *counts, int dimensions,
                      Py_ssize_t length)
{
    Py_ssize_t strides[MOST_DIMENSIONS], size = length;
    for (int i = dimensions - 1; i >= 0; i--) {
        strides[i] = size;
        size = size <= PY_SSIZE_T_MAX / counts[i] ? size * counts[i] : PY_SSIZE_T_MAX;
    }
    char *between = size < PY_SSIZE_T_MAX ? PyMem_Malloc(size) : NULL;
    if (between == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    copy_dimensions(between, strides, source->first, source->strides, counts, dimensions, length);
    copy_dimensions(target->first, target->strides, between, strides, counts, dimensions, length);
    PyMem_Free(between);
    return 0;
}

static int copy_blocks_of(Blocks *target, Py_ssize_t place, Blocks *source, Py_ssize_t origin,
                          const Py_ssize_t *counts, int dimensions, Py_ssize_t length)
{
    char *low, *high, *source_low, *source_high;
    for (int i = 0; i < dimensions; i++)
        if (counts[i] <= 0)
            return 0;
    if (!span(target, place, counts, dimensions, length, &low, &high)
        || !span(source, origin, counts, dimensions, length, &source_low, &source_high)) {
        PyErr_SetString(PyExc_ValueError, "blocks are not inside the buffer");
        return -1;
    }
    target->first = (char *)target->buffer.buf + place;
    source->first = (char *)source->buffer.buf + origin;
    if (source_low < high && low < source_high)
        return copy_apart(target, source, counts, dimensions, length);
    copy_dimensions(target->first, target->strides, source->first, source->strides, counts,
                    dimensions, (size_t)length);
    return 0;
}

static PyObject *copy_blocks(PyObject *module, PyObject *const *args, Py_ssize_t number)
{
    Py_ssize_t counts[MOST_DIMENSIONS], to[MOST_DIMENSIONS], from[MOST_DIMENSIONS];
    if (number != 8) {
        PyErr_SetString(PyExc_TypeError, "copy_blocks() takes 8 arguments");
        return NULL;
    }
    Py_ssize_t place = PyLong_AsSsize_t(args[1]), origin = PyLong_AsSsize_t(args[4]);
    Py_ssize_t length = PyLong_AsSsize_t(args[7]);
    if (PyErr_Occurred())
        return NULL;
    int dimensions = integers(args[6], counts), strides = integers(args[2], to);
    if (dimensions < 0 || strides < 0)
        return NULL;
    int others = integers(args[5], from);
    if (others < 0)
        return NULL;
    if (strides != dimensions || others != dimensions) {
        PyErr_SetString(PyExc_ValueError, "expected a stride for each dimension");
        return NULL;
    }
    Blocks target = {.strides = to}, source = {.strides = from};
    if (PyObject_GetBuffer(args[0], &target.buffer, PyBUF_WRITABLE))
        return NULL;
    if (PyObject_GetBuffer(args[3], &source.buffer, PyBUF_SIMPLE)) {
        PyBuffer_Release(&target.buffer);
        return NULL;
    }
    int failed = copy_blocks_of(&target, place, &source, origin, counts, dimensions, length);
    PyBuffer_Release(&source.buffer);
    PyBuffer_Release(&target.buffer);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL,
     "copy(target, source, past_cache): copy a contiguous buffer to another of the same size.\n\n"
     "With `past_cache` the copy does not get into the cache of the processor."},
    {"copy_blocks", (PyCFunction)(void (*)(void))copy_blocks, METH_FASTCALL,
     "copy_blocks(target, place, strides, source, origin, source_strides, counts, length):\n"
     "copy blocks of bytes that are repeated along dimensions, the outermost first.\n\n"
     "The first block is at byte `place` of the target and at byte `origin` of the source."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "memcopy", "Copies of large blocks and of strided ones.", -1, methods,
};

PyMODINIT_FUNC PyInit_memcopy(void) { return PyModule_Create(&definition); }
