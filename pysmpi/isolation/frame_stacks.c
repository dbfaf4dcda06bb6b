/* Stacks for the Python frames of ranks, as large as they need.

   The interpreter gives each greenlet 16 KiB for frames, in pages of its own. A rank that waits has
   1 to 2 KiB of frames, but keeps every page that it has touched, for example while it imported
   modules. Here ranks get their 16 KiB in one piece of memory, one after another. At the first wait
   of a rank most of the rest of its stack is given to the next one. If it needs more later, the
   interpreter adds 16 KiB and takes them back when the frames have ended; some of these stacks are
   kept, because to map and unmap memory takes longer than most functions.

   The fields of the state of a thread are those that greenlet exchanges when it switches. All
   functions are called with the interpreter's lock. */

#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1 /* for the layout of frames */
#include <Python.h>
#include <stddef.h>
#if PY_VERSION_HEX < 0x030E0000
#include <internal/pycore_frame.h>
#endif

#define FULL ((size_t)16 << 10) /* bytes of a stack of the interpreter */
#define LEAST 2048 /* bytes of a stack: most waits of most programs need no more */
#define MARGIN 256 /* bytes that a stack has beyond its first wait */
#define LINE 64
#define PAGE 4096
#define SLAB ((size_t)1 << 20)
#define TRACED 0x6d7069 /* domain of tracemalloc */
#define KEPT 16 /* stacks of the interpreter that are kept */

typedef struct {
    size_t stacks; /* in use */
    char *next, *end; /* the place of the next stack, and the end of this memory */
} Slab;

typedef struct {
    Slab *slab;
    _PyStackChunk chunk;
} Stack;

static Slab *current;
static Stack *open_stack; /* the latest one, until its size is known */

static PyObjectArenaAllocator arenas; /* the interpreter's own functions */
static void *kept[KEPT];
static int number;

static Stack *of_chunk(_PyStackChunk *chunk)
{
    return (Stack *)((char *)chunk - offsetof(Stack, chunk));
}

/* End the room of the latest stack after some bytes. */
static void close_stack(size_t size)
{
    current->next = (char *)&open_stack->chunk + size;
    open_stack = NULL;
}

static Stack *take_stack(void)
{
    if (open_stack != NULL)
        close_stack(FULL);
    if (current != NULL && current->stacks == 0) {
        current->next = (char *)(current + 1);
    } else if (current == NULL || current->next + LINE + sizeof(Stack) + FULL > current->end) {
        PyObjectArenaAllocator large; /* the functions for arenas may have changed since */
        PyObject_GetArenaAllocator(&large);
        Slab *slab = large.alloc(large.ctx, SLAB);
        if (slab == NULL)
            return NULL;
        PyTraceMalloc_Track(TRACED, (uintptr_t)slab, SLAB); /* as arenas are not */
        slab->stacks = 0;
        slab->next = (char *)(slab + 1);
        slab->end = (char *)slab + SLAB;
        current = slab;
    }
    Stack *stack = (Stack *)current->next;
    /* Stacks of the interpreter begin with a page, others do not. */
    if ((uintptr_t)&stack->chunk % PAGE == 0)
        stack = (Stack *)(current->next + LINE);
    stack->slab = current;
    stack->chunk.previous = NULL;
    stack->chunk.size = FULL;
    stack->chunk.top = 0;
    current->stacks++;
    return open_stack = stack;
}

static void free_stack(Stack *stack)
{
    Slab *slab = stack->slab;
    if (stack == open_stack)
        open_stack = NULL; /* the next stack takes its place */
    if (--slab->stacks == 0 && slab != current) {
        PyTraceMalloc_Untrack(TRACED, (uintptr_t)slab);
        arenas.free(arenas.ctx, slab, SLAB);
    }
}

/* Let the running greenlet, if its stack is the latest, keep only what it needs. */
static void fit(void)
{
    PyThreadState *state = PyThreadState_Get();
    _PyStackChunk *chunk = state->datastack_chunk;
    if (open_stack == NULL || chunk != &open_stack->chunk)
        return;
    size_t size = (char *)state->datastack_top - (char *)chunk + MARGIN;
    size = size < LEAST ? LEAST : (size + LINE - 1) / LINE * LINE;
    if (size < FULL) {
        chunk->size = size;
        state->datastack_limit = (PyObject **)((char *)chunk + size);
    }
    close_stack(chunk->size);
}

static void *allocate(void *context, size_t size)
{
    return size == FULL && number > 0 ? kept[--number] : arenas.alloc(context, size);
}

static void deallocate(void *context, void *address, size_t size)
{
    if ((uintptr_t)address % PAGE != 0)
        free_stack(of_chunk(address)); /* of a greenlet that never ended */
    else if (size == FULL && number < KEPT)
        kept[number++] = address;
    else
        arenas.free(context, address, size);
}

/* A callable that does something before it calls a function. */
typedef struct {
    PyObject_HEAD
    PyObject *function;
    vectorcallfunc vectorcall;
} Caller;

static PyObject *begin(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    PyObject *function = ((Caller *)self)->function;
    PyThreadState *state = PyThreadState_Get();
    Stack *stack = state->datastack_chunk == NULL ? take_stack() : NULL;
    if (stack == NULL)
        return PyObject_Vectorcall(function, arguments, count, names);
    state->datastack_chunk = &stack->chunk;
    state->datastack_limit = (PyObject **)((char *)&stack->chunk + FULL);
    state->datastack_top = &stack->chunk.data[1]; /* so that the interpreter never frees the first */
    PyObject *result = PyObject_Vectorcall(function, arguments, count, names);
    state->datastack_chunk = NULL;
    state->datastack_top = state->datastack_limit = NULL;
    free_stack(stack);
    return result;
}

static PyObject *wait(PyObject *self, PyObject *const *arguments, size_t count, PyObject *names)
{
    fit();
    return PyObject_Vectorcall(((Caller *)self)->function, arguments, count, names);
}

static int traverse(Caller *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    return 0;
}

static int clear(Caller *self)
{
    Py_CLEAR(self->function);
    return 0;
}

static void destroy(Caller *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->function);
    PyObject_GC_Del(self);
}

static PyTypeObject caller_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pysmpi.isolation.frame_stacks.Caller",
    .tp_basicsize = sizeof(Caller),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
                | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Caller, vectorcall),
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)destroy,
};

static PyObject *new_caller(PyObject *function, vectorcallfunc vectorcall)
{
    Caller *self = PyObject_GC_New(Caller, &caller_type);
    if (self != NULL) {
        self->function = Py_NewRef(function);
        self->vectorcall = vectorcall;
        PyObject_GC_Track(self);
    }
    return (PyObject *)self;
}

static PyObject *beginning(PyObject *module, PyObject *function)
{
    return new_caller(function, begin);
}

static PyObject *waiting(PyObject *module, PyObject *function)
{
    return new_caller(function, wait);
}

static PyObject *room(PyObject *module, PyObject *nothing)
{
    PyThreadState *state = PyThreadState_Get();
    _PyStackChunk *chunk = state->datastack_chunk;
    PyObject *sizes = PyList_New(0);
    for (; sizes != NULL && chunk != NULL; chunk = chunk->previous) {
        PyObject *size = PyLong_FromSize_t(chunk->size);
        if (size == NULL || PyList_Append(sizes, size) < 0)
            Py_CLEAR(sizes);
        Py_XDECREF(size);
    }
    return sizes;
}

#if PY_VERSION_HEX < 0x030E0000
/* Whether the code of a frame that waits was called by that of another one, without C between. */
static int called_by(_PyInterpreterFrame *frame, _PyInterpreterFrame *caller)
{
#if PY_VERSION_HEX < 0x030C0000
    return frame->previous == caller && !frame->is_entry;
#else
    return frame->previous == caller;
#endif
}
#endif

/* A frame that waits has its variables, the values of its unfinished expressions and the iterators of
   its loops on its stack. While it calls C, the interpreter holds the height of this stack for
   itself. */
static PyObject *values(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyFrame_Check(arguments[0]) || !PyFrame_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "expected two frames");
        return NULL;
    }
#if PY_VERSION_HEX < 0x030E0000
    _PyInterpreterFrame *frame = ((PyFrameObject *)arguments[0])->f_frame;
    _PyInterpreterFrame *callee = ((PyFrameObject *)arguments[1])->f_frame;
    if (frame->stacktop >= 0 && called_by(callee, frame)) {
        PyObject *found = PyTuple_New(frame->stacktop);
        for (int i = 0; found != NULL && i < frame->stacktop; i++) {
            PyObject *value = frame->localsplus[i];
            PyTuple_SET_ITEM(found, i, Py_NewRef(value == NULL ? Py_NotImplemented : value));
        }
        return found;
    }
#endif
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"beginning", beginning, METH_O,
     "beginning(function): a callable that calls `function`.\n\n"
     "As the first function of a greenlet, it gives it a stack that `waiting` can fit."},
    {"waiting", waiting, METH_O,
     "waiting(function): a callable that calls `function`.\n\n"
     "If the greenlet was the latest to begin, its stack is first fitted to its frames."},
    {"room", room, METH_NOARGS,
     "room(): the sizes of the stacks of the running greenlet (bytes), the latest first."},
    {"values", (PyCFunction)(void (*)(void))values, METH_FASTCALL,
     "values(frame, callee): the values on the stack of a frame that waits for `callee`.\n\n"
     "None if C code is between the two, or this version of Python does not tell."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "frame_stacks", "Stacks for the Python frames of ranks.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_frame_stacks(void)
{
    PyObjectArenaAllocator own;
    if (PyType_Ready(&caller_type) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && arenas.alloc == NULL) {
        PyObject_GetArenaAllocator(&arenas);
        own = (PyObjectArenaAllocator){arenas.ctx, allocate, deallocate};
        PyObject_SetArenaAllocator(&own);
    }
    return module;
}
