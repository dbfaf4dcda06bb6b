/* The processes that ranks with compiled programs simulate, and what the files of the engine share. */

#define PY_SSIZE_T_CLEAN
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <Python.h>
#include <elf.h>
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
#define GUARD ((size_t)64 << 20)

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

/* A loaded copy of the program or of a library. */
typedef struct {
    void *handle; /* of dlopen */
    struct link_map *map;
    uintptr_t base; /* its addresses, and their bytes */
    size_t size;
    Py_ssize_t number; /* of the file, in the upper bits of the places of its calls */
    int constructed;   /* whether its constructors have run */
} image;

/* An address in a library that all ranks share: that of a variable of which the program has a copy. */
typedef struct {
    void **slot;
    void *own, *outer;
} binding;

typedef int thread_count; /* of threads that a program has started, and that have not ended */

/* The process that a rank with a compiled program simulates. */
typedef struct Process {
    PyObject_HEAD
    /* What each call reads is together: the processor has the memory of few ranks at hand. */
    void *own; /* the pointers of both stacks where the other one continues */
    void *threads;
    frame *frames;
    PyObject *objects; /* handles of Python by their integers */
    PyObject *timer;   /* of the compute of the rank, None or NULL if it takes no time */
    void *site; /* the return address of the call */
    uintptr_t base; /* of the first image */
    size_t size;
    Py_ssize_t number; /* of its file */
    FILE *streams[3];
    int on_own; /* whether the program itself runs */
    int error;  /* errno */
    int bindings_count;
    int outside; /* whether MPI is not initialized, or finalized: most calls are refused */
    int shared;  /* 1 or 2 if other ranks use the same images, 2 if another one has loaded them */
    int jumping; /* whether functions end that the program has left with longjmp */
    volatile int crash;   /* the signal that ended the program, 0 if none did */
    volatile int refused; /* whether a thread that is not the main one has called MPI */
    binding *bindings;
    char *stack; /* its own stack, with a guard at the lowest addresses */
    size_t length;
    image *images; /* the program, its libraries, and those that it has opened */
    int images_count;
    FILE **copied_streams[3]; /* the program's copies of `stdin` and its like, if it has some */
    int status;    /* with which it ends */
    int ended;
    char **variables;
    char ***environment; /* where the program finds them */
    int words_count;
    char **words;
    uintptr_t landed;  /* its stack when it has left functions with longjmp */
    jmp_buf *resume;   /* where it continues */
    thread_count *threads_alive;
    int starts_threads;   /* whether libraries start some for it */
    volatile int leaving; /* whether one has called exit */
    int late;             /* interruptions that the timer has put off */
    struct Process *next, **link; /* of all processes, and what points to this one */
    int kept; /* whether nothing is released at its end: the process of Python ends soon */
    frame outermost;
    ending *endings;
    options options;
    void *slots[PSM_SLOTS]; /* of the libraries of other binary interfaces */
    uintptr_t at, fault; /* its instruction, and the address that it used */
    uintptr_t caller;    /* the return address of the program, if a library was called */
} Process;

extern Process *running; /* whose program runs, or has called Python */
extern pthread_t thread; /* that runs all programs */
extern Process *processes;
extern pthread_mutex_t processes_lock; /* for threads of programs */
extern PyTypeObject ProcessType;

/* Of calls.c. */

extern PyObject *handlers; /* a list of functions by number */
extern PyObject *refusals; /* those that take their place while MPI is not initialized */
/* By number: dictionaries of what calls a function from each place; with a timer, and without one. */
extern PyObject **places[2];
extern PyObject *direct;   /* those for calls of libraries */
extern PyObject *missing;  /* finds the object of a handle that no dictionary has */
extern PyObject *arrive, *leave_name; /* the names of methods of timers */

int elsewhere(void); /* whether another thread runs */
/* The process whose program has an address; NULL if none has. */
Process *owner_of(uintptr_t address);
/* The process whose program calls, NULL if a library does. */
Process *caller(void);
/* The process of the rank whose library calls; NULL if there is none. The rank keeps it. */
Process *process_of_library(void);
void leave(Process *process);
/* End the rank whose library has called, with the exception that is set. */
void end_rank(void);
void settle(Process *process, uintptr_t here);
PyObject *argument(Process *process, char kind, long long value);

#define PYTHON(number, ...)                                                                        \
    psm_call(number, (const long long[]){__VA_ARGS__, 0}, __builtin_return_address(0))

/* Of threads.c. */

/* Wait for ever, in a thread that is not the main one: its rank ends. */
void park(void) __attribute__((noreturn));
extern __thread int refused_here; /* whether this thread has called MPI for a library */
/* What a program calls in place of a function that starts threads. */
void *thread_replacement(const char *name, Process *process);
/* Whether code of a program may still run, in a thread that has outlived its rank. */
int may_have_threads(Process *process);

/* Of streams.c. */

extern FILE *ours[3];
extern FILE **const usual[3];
void install(Process *process);
void uninstall(Process *process);
FILE *stream(int descriptor, int buffering);
void adopt_cxx_streams(void); /* after the library of C++ was loaded */

/* Of faults.c. */

void begin_program(void); /* before it runs */
void end_program(void);
void watch_faults(void); /* of libraries of ranks in Python */
void ignore_faults(void);
/* What ended a program: the signal, the place, the place of the call if this is in a library, whether
   its stack is full, library and function. */
PyObject *crashed(Process *process);

/* Of c_library.c. */

/* End the program that runs, or the rank whose library does. */
void finish(int status, int quick);

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

/* Libraries of ranks in Python, and programs with their libraries. */
enum { LIBRARY, PROGRAM };
/* What a library or a program calls in place of a function; NULL if this stays. */
void *replacement_of(const char *name, int kind);

/* Of loading.c. */

/* The tables of a loaded file. */
typedef struct {
    const ElfW(Rela) *entries[2]; /* of functions, and of addresses */
    size_t counts[2];
    const ElfW(Sym) *symbols;
    const char *names;
} tables;

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#define ADDRESS R_X86_64_64
#define COPY R_X86_64_COPY
#else
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#define ADDRESS R_AARCH64_ABS64
#define COPY R_AARCH64_COPY
#endif

tables tables_of(const struct link_map *map);
/* Let the loader load the file of a loaded one again; 0 if it would take both for one. */
int forget_file(struct link_map *map, int file);
/* Let a file call our functions; `process` is that of a program. */
int redirect(const struct link_map *map, int kind, Process *process);
/* Copy data to where the loader may have made the memory read-only. */
int store(void *target, const void *data, size_t size);
PyObject *open_library(PyObject *module, PyObject *args);
PyObject *share(PyObject *module, PyObject *args);
PyObject *export_functions(PyObject *module, PyObject *args);
PyObject *handle_of(PyObject *module, PyObject *args);

/* Of images.c. */

/* Load a program or a library with its libraries; its first image, or NULL with an error. */
image *load_images(Process *process, const char *path, Py_ssize_t number, Py_ssize_t size,
                   PyObject *libraries);
void construct(Process *process);
void destroy(Process *process);
void close_images(Process *process);
/* The image with an address, NULL if none has it. */
const image *image_at(const Process *process, uintptr_t address);

/* Of copied.c. */

/* Connect the variables of which a program has copies with the libraries that define them. */
int bind_variables(Process *process);

/* Of memory.c. */

extern PyMethodDef memory_methods[];
