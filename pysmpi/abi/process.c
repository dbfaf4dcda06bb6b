/* The type of processes: loading, running and ending a program. */

#include "process.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>
#include <sys/mman.h>
#include <unistd.h>

static PyObject *
process_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stack", "objects", NULL};
    Py_ssize_t length;
    PyObject *objects;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nO!", names, &length, &PyDict_Type, &objects))
        return NULL;
    Process *self = (Process *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    long page = sysconf(_SC_PAGESIZE);
    self->length = ((size_t)length + (size_t)page - 1) / (size_t)page * (size_t)page + GUARD;
    thread = pthread_self();
    self->objects = Py_NewRef(objects);
    self->environment = &self->variables;
    if (length == 0) { /* of a rank whose libraries alone call MPI */
        self->length = 0;
        return (PyObject *)self;
    }
    self->stack = mmap(NULL, self->length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (self->stack == MAP_FAILED) {
        self->stack = NULL;
        Py_DECREF(self);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    mprotect(self->stack, GUARD, PROT_NONE);
    pthread_mutex_lock(&processes_lock);
    self->next = processes;
    self->link = &processes;
    if (processes != NULL)
        processes->link = &self->next;
    processes = self;
    pthread_mutex_unlock(&processes_lock);
    return (PyObject *)self;
}

static void
process_dealloc(Process *self)
{
    if (self->link != NULL) {
        pthread_mutex_lock(&processes_lock);
        *self->link = self->next;
        if (self->next != NULL)
            self->next->link = self->link;
        pthread_mutex_unlock(&processes_lock);
    }
    while (self->endings != NULL) {
        ending *last = self->endings;
        self->endings = last->next;
        free(last);
    }
    /* No rank can have a buffer in them any more; but a thread may still run. */
    const int stays = may_have_threads(self) || self->kept;
    if (!stays)
        close_images(self);
    free(self->bindings);
    if (self->stack != NULL && !stays)
        munmap(self->stack, self->length);
    for (int i = 0; i < PSM_SLOTS; i++)
        free(self->slots[i]);
    Py_XDECREF(self->objects);
    Py_XDECREF(self->timer);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* The bytes that the system puts on the stack of a new program, from `argc` on. */
static void *
prepare_stack(Process *self, PyObject *words, PyObject *variables)
{
    Py_ssize_t argc = PyTuple_GET_SIZE(words), entries = PyTuple_GET_SIZE(variables);
    char *text = self->stack + self->length;
    size_t count = (size_t)(argc + entries) + 5;
    char **pointers = calloc(count, sizeof *pointers);
    if (pointers == NULL)
        return PyErr_NoMemory();
    pointers[0] = (char *)(intptr_t)argc;
    for (Py_ssize_t i = 0; i < argc + entries; i++) {
        PyObject *item = i < argc ? PyTuple_GET_ITEM(words, i) : PyTuple_GET_ITEM(variables, i - argc);
        size_t size = (size_t)PyBytes_GET_SIZE(item) + 1;
        text -= size;
        memcpy(text, PyBytes_AS_STRING(item), size);
        pointers[1 + i + (i >= argc)] = text;
    }
    char **top = (char **)(((uintptr_t)text - count * sizeof *pointers) & ~(uintptr_t)15);
    memcpy(top, pointers, count * sizeof *pointers);
    free(pointers);
    if (argc > 0)
        name_program(&self->options, top[1]);
    self->words_count = (int)argc;
    self->words = top + 1;
    self->variables = *self->environment = top + 2 + argc;
    return top;
}

typedef struct {
    void *stack, *entry;
} beginning;

static void begin(void *pointer) { psm_start(((beginning *)pointer)->stack, ((beginning *)pointer)->entry); }

/* run(entry, arguments, variables): the status with which the program ends.

   After a fault, the result of `crashed`. */
static PyObject *
process_run(Process *self, PyObject *args)
{
    Py_ssize_t entry;
    PyObject *words, *variables;
    if (!PyArg_ParseTuple(args, "nO!O!", &entry, &PyTuple_Type, &words, &PyTuple_Type, &variables))
        return NULL;
    void *const top = prepare_stack(self, words, variables);
    if (top == NULL)
        return NULL;
    beginning first = {top, (void *)entry};
    self->outermost.outer = NULL;
    self->outermost.top = UINTPTR_MAX;
    self->frames = &self->outermost;
    begin_program();
    if (_setjmp(self->outermost.leave) == 0) {
        self->on_own = 1;
        install(self);
        /* The entry point does not return, so it needs no stack but its own. */
        psm_on_stack((char *)top - 64, begin, &first, &self->threads);
    }
    uninstall(self);
    running = NULL;
    self->frames = NULL;
    end_program();
    if (self->refused && !PyErr_Occurred()) {
        Py_XDECREF(PyObject_CallMethod(missing, "thread", NULL));
        return NULL;
    }
    if (self->crash) {
        PyErr_Clear();
        return crashed(self);
    }
    if (self->ended) /* by exit, inside a callback too */
        PyErr_Clear();
    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(self->status);
}

typedef struct {
    Process *process;
    long long (*function)(long long, long long, long long, long long, long long, long long, long long);
    long long arguments[7], result;
} callback;

static void
call_back(void *pointer)
{
    callback *self = pointer;
    long long *a = self->arguments;
    const psm_closure *closure = psm_closure_at((void *)self->function);
    if (closure != NULL)
        self->result = closure->adapter(closure->function, a);
    else
        self->result = self->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    settle(self->process, (uintptr_t)__builtin_frame_address(0));
}

/* call(function, *arguments): call a function of the program, as its process does. */
static PyObject *
process_call(Process *self, PyObject *args)
{
    callback wanted = {self};
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    if (count < 1 || count > 8) {
        PyErr_SetString(PyExc_TypeError, "expected a function and at most 7 arguments");
        return NULL;
    }
    wanted.function = (void *)PyLong_AsVoidPtr(PyTuple_GET_ITEM(args, 0));
    for (Py_ssize_t i = 1; i < count; i++)
        wanted.arguments[i - 1] = (long long)PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(args, i));
    if (PyErr_Occurred())
        return NULL;
    if (self->stack == NULL) { /* of a library: as Python calls its functions */
        call_back(&wanted);
        return PyLong_FromLongLong(wanted.result);
    }
    Process *outer = running;
    void *own = self->own, *threads = self->threads;
    void *const top = (void *)(((uintptr_t)own - BELOW) & ~(uintptr_t)15);
    frame mine = {self->frames, .top = (uintptr_t)top};
    self->frames = &mine;
    if (_setjmp(mine.leave) == 0) {
        self->on_own = 1;
        install(self);
        psm_on_stack(top, call_back, &wanted, &self->threads);
    }
    self->on_own = 0;
    uninstall(self);
    running = outer;
    self->own = own;
    self->threads = threads;
    self->frames = mine.outer;
    /* The program has called exit or longjmp, which end the outer functions too. */
    if (self->crash || self->ended || self->jumping || self->refused) {
        PyErr_SetNone(PyExc_GeneratorExit);
        return NULL;
    }
    if (PyErr_Occurred())
        return NULL;
    return PyLong_FromLongLong(wanted.result);
}

/* The base addresses of images from a first one on. */
static PyObject *
bases_of(const Process *self, int first)
{
    PyObject *result = PyTuple_New(self->images_count - first);
    for (int i = first; result != NULL && i < self->images_count; i++) {
        PyObject *base = PyLong_FromSize_t(self->images[i].base);
        if (base == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i - first, base);
    }
    return result;
}

/* load(stdout, stderr, shared, path, number, size, libraries, file): load a copy of a program; the
   base addresses of it and its libraries, and whether `file`, its descriptor, can be loaded again
   under another path. `file` is -1 if no other rank shall load it. The libraries are (name, number,
   size), in the order of constructors. */
static PyObject *
process_load(Process *self, PyObject *args)
{
    const char *path;
    int buffering[2], file;
    Py_ssize_t number, size;
    PyObject *libraries;
    if (!PyArg_ParseTuple(args, "iiisnnO!i", &buffering[0], &buffering[1], &self->shared, &path,
                          &number, &size, &PyTuple_Type, &libraries, &file))
        return NULL;
    for (int i = 0; i < 3; i++)
        self->streams[i] = stream(i, i == 0 ? _IOFBF : buffering[i - 1]);
    begin_options(&self->options);
    install(self); /* the program gets a copy of `stdout` */
    const image *program = load_images(self, path, number, size, libraries);
    const int again = file >= 0 && program != NULL && forget_file(program->map, file);
    uninstall(self);
    running = NULL;
    if (program == NULL)
        return NULL;
    self->base = program->base;
    self->size = program->size;
    self->number = program->number;
    return Py_BuildValue("NN", bases_of(self, 0), PyBool_FromLong(again));
}

/* open(path, number, size, libraries): load a library that the program opens; base addresses. */
static PyObject *
process_open(Process *self, PyObject *args)
{
    const char *path;
    Py_ssize_t number, size;
    PyObject *libraries;
    if (!PyArg_ParseTuple(args, "snnO!", &path, &number, &size, &PyTuple_Type, &libraries))
        return NULL;
    const int first = self->images_count;
    return load_images(self, path, number, size, libraries) == NULL ? NULL : bases_of(self, first);
}

/* close(): close the streams, after the end of the program. */
static PyObject *
process_close(Process *self, PyObject *Py_UNUSED(args))
{
    fflush(ours[1]); /* of libraries that ranks share, such as that of C++ */
    for (int i = 0; i < 3; i++)
        if (self->streams[i] != NULL) {
            /* The C library looks for a stream among those of all ranks before it closes it. */
            if (self->kept)
                fflush(self->streams[i]);
            else
                fclose(self->streams[i]);
            self->streams[i] = NULL;
        }
    Py_RETURN_NONE;
}

static PyMemberDef process_members[] = {
    {"timer", T_OBJECT, offsetof(Process, timer), 0, NULL},
    {"outside", T_INT, offsetof(Process, outside), 0, NULL},
    {"kept", T_INT, offsetof(Process, kept), 0, NULL},
    {NULL},
};

static PyMethodDef process_methods[] = {
    {"load", (PyCFunction)process_load, METH_VARARGS, NULL},
    {"open", (PyCFunction)process_open, METH_VARARGS, NULL},
    {"run", (PyCFunction)process_run, METH_VARARGS, NULL},
    {"call", (PyCFunction)process_call, METH_VARARGS, NULL},
    {"close", (PyCFunction)process_close, METH_NOARGS, NULL},
    {NULL},
};

PyTypeObject ProcessType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pysmpi.abi.engine.Process",
    .tp_basicsize = sizeof(Process),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = process_new,
    .tp_dealloc = (destructor)process_dealloc,
    .tp_methods = process_methods,
    .tp_members = process_members,
};
