/* The processes that ranks with compiled programs simulate, and what the files of the engine share. */

#define PY_SSIZE_T_CLEAN
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <Python.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include "engine.h"

/* Of stacks.c. */

/* Call `function(argument)` on the stack that ends at `top`; `*left` is where this one continues. */
void psm_on_stack(void *top, void (*function)(void *), void *argument, void **left);
/* Jump to the entry point of a program, with the stack that the system prepares. */
void psm_start(void *stack, void *entry) __attribute__((noreturn));

#define BELOW 256 /* bytes under a stack pointer that its function may use */
/* Bytes below a stack: a function may have large arrays, which it need not use in order. */
#define GUARD ((size_t)1 << 20)

/* A function of the program that pysmpi has called, `main` included. */
typedef struct frame {
    struct frame *outer;
    jmp_buf leave; /* ends it, with an exception or a status */
    uintptr_t top; /* its stack is below this address */
} frame;

typedef struct ending {
    struct ending *next;
    void (*function)(void *);
    void *argument;
} ending;

/* The words of a program: the state of `getopt`, and variables, which may be in the program. */
typedef struct {
    int *index, *errors, *option; /* optind, opterr, optopt */
    char **argument;              /* optarg */
    char **name, **short_name;    /* program_invocation_name */
    int first_index, print, other;
    char *value, *own_name, *own_short_name;
    char *next;      /* in a word with several options */
    int first, last; /* the words that are no options and were passed over */
    int order, started;
} options;

/* The process that a rank with a compiled program simulates. */
typedef struct Process {
    PyObject_HEAD
    char *stack; /* its own stack, with a guard at the lowest addresses */
    size_t length;
    void *own; /* the pointers of both stacks where the other one continues */
    void *threads;
    int on_own; /* whether the program itself runs */
    int loading; /* whether its constructors run, on the stack of the thread */
    frame *frames;
    PyObject *objects; /* handles of Python by their integers */
    PyObject *timer;   /* of the compute of the rank, None or NULL if it takes no time */
    FILE *streams[3];
    void *library; /* of dlopen: the copy of the program */
    int error;     /* errno */
    int status;    /* with which it ends */
    int ended;
    char **variables;
    void *site; /* the return address of the call */
    uintptr_t base; /* of the copy of the program, and its bytes */
    size_t size;
    Py_ssize_t number; /* of the program, in the upper bits of the places of its calls */
    int jumping;       /* whether functions end that the program has left with longjmp */
    uintptr_t landed;  /* its stack then */
    jmp_buf *resume;   /* where it continues */
    volatile int refused; /* whether a thread that is not the main one has called MPI */
    int late;             /* interruptions that the timer has put off */
    struct Process *next; /* of all processes */
    ending *endings;
    options options;
    void *slots[PSM_SLOTS]; /* of the libraries of other binary interfaces */
    int crash;         /* the signal that ended the program, 0 if none did */
    uintptr_t at, fault; /* its instruction, and the address that it used */
} Process;

extern Process *running; /* whose program runs, or has called Python */
extern pthread_t thread; /* that runs all programs */
extern Process *processes;
extern pthread_mutex_t processes_lock; /* for threads of programs */
extern PyTypeObject ProcessType;

/* Of calls.c. */

extern PyObject *handlers; /* a list of functions by number */
extern PyObject *direct;   /* those for calls of libraries */
extern PyObject *missing;  /* finds the object of a handle that no dictionary has */
extern PyObject *arrive, *leave_name; /* the names of methods of timers */

int elsewhere(void); /* whether another thread runs */
/* The process whose program calls, NULL if a library does. */
Process *caller(void);
/* The process of the rank whose library calls; NULL if there is none. The rank keeps it. */
Process *process_of_library(void);
void leave(Process *process);
void settle(Process *process, uintptr_t here);
PyObject *argument(Process *process, char kind, long long value);

#define PYTHON(number, ...)                                                                        \
    psm_call(number, (const long long[]){__VA_ARGS__, 0}, __builtin_return_address(0))

/* Of streams.c. */

extern FILE *ours[3];
extern FILE **const usual[3];
void install(Process *process);
void uninstall(Process *process);
FILE *stream(int descriptor, int buffering);

/* Of faults.c. */

void catch_faults(void);   /* before a program runs */
void release_faults(void); /* after it */
/* What ended a program: the signal, the place, whether its stack is full, library and function. */
PyObject *crashed(Process *process);

/* Of c_library.c. */

char *own_getenv(const char *name);

/* Of options.c. */

struct option;
void begin_options(options *self);
void name_program(options *self, char *name);
void *option_variable(options *self, const char *name, void *copy);
int own_getopt(int count, char *const *words, const char *names);
int own_posix_getopt(int count, char *const *words, const char *names);
int own_getopt_long(int count, char *const *words, const char *names, const struct option *longs,
                    int *which);
int own_getopt_long_only(int count, char *const *words, const char *names,
                         const struct option *longs, int *which);

/* The kinds of what is loaded: they call different functions of pysmpi in place of the C library's. */
enum { LIBRARY, PROGRAM, FORTRAN_LIBRARY };
/* What a library or a program calls in place of a function; NULL if this stays. */
void *replacement_of(const char *name, int kind);

/* Of loading.c. */

/* `process` is that of a program, whose variables have addresses of their own. */
int redirect(const struct link_map *map, int kind, Process *process);
int disarm(void *library);
PyObject *open_library(PyObject *module, PyObject *args);
PyObject *share(PyObject *module, PyObject *args);
PyObject *export_functions(PyObject *module, PyObject *args);
PyObject *adopt(PyObject *module, PyObject *args);

/* Of memory.c. */

extern PyMethodDef memory_methods[];
