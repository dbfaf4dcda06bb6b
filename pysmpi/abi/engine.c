/* Calls between compiled MPI programs and Python.

A program runs on a stack of its own, so its buffers keep their addresses while other ranks run. Its
MPI calls continue on the stack of the thread, which greenlets exchange; Python runs there. A rank
that ends inside a call leaves its own stack as it is.

Libraries that Python code calls run on the stack of the thread, under its frames. Their MPI calls
continue in Python directly, and a rank that ends inside such a call is never resumed.

All functions but the calls of libraries are called with the interpreter's lock. */

#define PY_SSIZE_T_CLEAN
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <Python.h>
#include <structmember.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "engine.h"

/* Call `function(argument)` on the stack that ends at `top`; `*left` is where this one continues. */
void psm_on_stack(void *top, void (*function)(void *), void *argument, void **left);
/* Jump to the entry point of a program, with the stack that the system prepares. */
void psm_start(void *stack, void *entry) __attribute__((noreturn));

#if defined(__x86_64__)
__asm__(".text\n.globl psm_on_stack\n.hidden psm_on_stack\n.type psm_on_stack,@function\n"
        "psm_on_stack:\n"
        "  push %rbp\n  mov %rsp, %rbp\n  mov %rsp, (%rcx)\n"
        "  mov %rdi, %rsp\n  mov %rdx, %rdi\n  call *%rsi\n"
        "  mov %rbp, %rsp\n  pop %rbp\n  ret\n"
        ".size psm_on_stack,.-psm_on_stack\n"
        ".globl psm_start\n.hidden psm_start\n.type psm_start,@function\n"
        "psm_start:\n"
        "  mov %rdi, %rsp\n  xor %edx, %edx\n  xor %ebp, %ebp\n  jmp *%rsi\n"
        ".size psm_start,.-psm_start\n"
        ".section .note.GNU-stack,\"\",@progbits\n.text\n");
#define MACHINE EM_X86_64
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#define COPY R_X86_64_COPY
#define ADDRESS R_X86_64_64
#elif defined(__aarch64__)
__asm__(".text\n.globl psm_on_stack\n.hidden psm_on_stack\n.type psm_on_stack,%function\n"
        "psm_on_stack:\n"
        "  stp x29, x30, [sp, #-16]!\n  mov x29, sp\n  mov x9, sp\n  str x9, [x3]\n"
        "  mov sp, x0\n  mov x0, x2\n  blr x1\n"
        "  mov sp, x29\n  ldp x29, x30, [sp], #16\n  ret\n"
        ".size psm_on_stack,.-psm_on_stack\n"
        ".globl psm_start\n.hidden psm_start\n.type psm_start,%function\n"
        "psm_start:\n"
        "  mov sp, x0\n  mov x0, #0\n  mov x29, #0\n  mov x30, #0\n  br x1\n"
        ".size psm_start,.-psm_start\n.text\n");
#define MACHINE EM_AARCH64
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#define COPY R_AARCH64_COPY
#define ADDRESS R_AARCH64_ABS64
#else
#error "compiled programs run on x86-64 and aarch64"
#endif

#define BELOW 256 /* bytes under a stack pointer that its function may use */
#define MOST_ARGUMENTS 16
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
    PyObject *files;   /* keeps alive what the C streams write to */
    FILE *streams[3];
    void *library; /* of dlopen: the copy of the program */
    int error;     /* errno */
    int status;    /* with which it ends */
    int ended;
    const char *const *arguments;
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
    void *slots[PSM_SLOTS]; /* of the libraries of other binary interfaces */
    int crash;         /* the signal that ended the program, 0 if none did */
    uintptr_t at, fault; /* its instruction, and the address that it used */
} Process;

static Process *running; /* whose program runs, or has called Python */
static pthread_t thread; /* that runs all programs */
static Process *processes;
static pthread_mutex_t processes_lock = PTHREAD_MUTEX_INITIALIZER; /* for threads of programs */
static PyObject *handlers;  /* a list of functions by number */
static PyObject *direct;    /* those for calls of libraries */
static PyObject *missing;   /* finds the object of a handle that no dictionary has */
static PyObject *arrive, *leave_name; /* the names of methods of timers */
static FILE **const usual[3] = {&stdin, &stdout, &stderr};
static FILE *ours[3];

static void
install(Process *process)
{
    running = process;
    for (int i = 0; i < 3; i++)
        *usual[i] = process != NULL && process->streams[i] ? process->streams[i] : ours[i];
    if (process != NULL)
        errno = process->error;
}

static void
uninstall(Process *process)
{
    process->error = errno;
    for (int i = 0; i < 3; i++)
        *usual[i] = ours[i];
}

/* The process whose program calls, NULL if a library does. */
static Process *
caller(void)
{
    return running != NULL && (running->on_own || running->loading) ? running : NULL;
}

static int elsewhere(void) { return !pthread_equal(pthread_self(), thread); }

/* The process whose program has an address; NULL if none has. */
static Process *
owner_of(uintptr_t address)
{
    pthread_mutex_lock(&processes_lock);
    Process *each = processes;
    while (each != NULL && address - each->base >= each->size)
        each = each->next;
    pthread_mutex_unlock(&processes_lock);
    return each;
}

static void
leave(Process *process)
{
    process->on_own = 0;
    process->loading = 0;
    _longjmp(process->frames->leave, 1);
}

/* End the functions of the program that MPI has called and that the program, whose stack is now at
   `here`, has left with longjmp. The calls of MPI in between end with an exception. */
static void
settle(Process *process, uintptr_t here)
{
    if (process->frames == NULL || here < process->frames->top)
        return;
    jmp_buf resume;
    if (_setjmp(resume) == 0) {
        process->jumping = 1;
        process->landed = here;
        process->resume = &resume;
        leave(process);
    }
    process->on_own = 1;
}

/* A fault of a program ends its rank, not the process that simulates. */

static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define FAULT_KINDS (sizeof FAULTS / sizeof *FAULTS)
static struct sigaction outer_actions[FAULT_KINDS];
static char handler_stack[64 * 1024];
static int programs; /* that run or wait */

static uintptr_t
instruction(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

static void
fault(int number, siginfo_t *info, void *context)
{
    Process *process = running;
    if (process != NULL && process->on_own && pthread_equal(pthread_self(), thread)) {
        process->crash = number;
        process->at = instruction(context);
        process->fault = (uintptr_t)info->si_addr;
        leave(process);
    }
    for (size_t i = 0; i < FAULT_KINDS; i++)
        if (FAULTS[i] == number)
            sigaction(number, &outer_actions[i], NULL); /* the instruction faults again */
}

/* While programs run, a timer interrupts the thread: Python handles no signals on its own then. */

#define TICK 100000000 /* ns */
#define PATIENCE 10    /* interruptions inside of libraries, whose data may be incomplete then */
#define TIMER_SIGNAL (SIGRTMAX - 4)
static timer_t ticks;
static int ticking;
static struct sigaction outer_tick;

static void
look_for_signals(void *pointer)
{
    Process *process = pointer;
    uninstall(process);
    if (PyErr_CheckSignals() < 0)
        leave(process);
    install(process);
}

static void
tick(int number, siginfo_t *info, void *context)
{
    Process *process = running;
    if (process == NULL || !process->on_own || !pthread_equal(pthread_self(), thread))
        return;
    if (process->refused) /* it may wait for the thread that was refused */
        leave(process);
    if (instruction(context) - process->base >= process->size && process->late++ < PATIENCE)
        return;
    process->late = 0;
    process->on_own = 0;
    void *top = (void *)(((uintptr_t)process->threads - BELOW) & ~(uintptr_t)15);
    psm_on_stack(top, look_for_signals, process, &process->own);
    process->on_own = 1;
}

static void
start_ticks(void)
{
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TIMER_SIGNAL};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    const struct itimerspec each = {{0, TICK}, {0, TICK}};
    sigaction(TIMER_SIGNAL, &action, &outer_tick);
    ticking = timer_create(CLOCK_MONOTONIC, &event, &ticks) == 0
        && timer_settime(ticks, 0, &each, NULL) == 0;
}

static void
stop_ticks(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    if (ticking)
        timer_delete(ticks);
    sigaction(TIMER_SIGNAL, &action, NULL); /* those that wait */
    sigaction(TIMER_SIGNAL, &outer_tick, NULL);
}

static void
catch_faults(void)
{
    start_ticks();
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    struct sigaction action = {.sa_sigaction = fault};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < FAULT_KINDS; i++)
        sigaction(FAULTS[i], &action, &outer_actions[i]);
}

static void
release_faults(void)
{
    stop_ticks();
    for (size_t i = 0; i < FAULT_KINDS; i++)
        sigaction(FAULTS[i], &outer_actions[i], NULL);
}

/* What ended a program: the signal, the place, whether its stack is full, library and function. */
static PyObject *
crashed(Process *self)
{
    uintptr_t site = self->at + 1 - self->base;
    int full = self->fault - (uintptr_t)self->stack < GUARD;
    Dl_info library = {0};
    dladdr((void *)self->at, &library);
    return Py_BuildValue("iniss", -self->crash,
                         site < self->size ? (Py_ssize_t)site | self->number : (Py_ssize_t)0, full,
                         library.dli_fname, library.dli_sname);
}

typedef struct {
    Process *process;
    int number;
    const long long *arguments;
    long long result;
    double real;
    int failed;
} call;

/* The value of an argument for Python, a new reference; NULL without an error for a handle that no
   object has. */
static PyObject *
argument(Process *process, char kind, long long value)
{
    switch (kind) {
    case 'i':
        return PyLong_FromLongLong(value);
    case 'p':
        return PyLong_FromUnsignedLongLong((unsigned long long)value);
    case '4':
    case '8': /* bytes of a count */
        return PyLong_FromLong(kind - '0');
    default: { /* a handle */
        PyObject *key = PyLong_FromUnsignedLong((uint32_t)value);
        if (key == NULL)
            return NULL;
        PyObject *object = PyDict_GetItemWithError(process->objects, key);
        Py_XINCREF(object);
        if (object == NULL && !PyErr_Occurred()) {
            object = PyObject_CallFunction(missing, "CO", kind, key);
            if (object == Py_None)
                Py_CLEAR(object);
        }
        Py_DECREF(key);
        return object;
    }
    }
}

static void
serve(call *self, PyObject *handler)
{
    Process *process = self->process;
    const psm_function *function = &psm_functions[self->number];
    const char *kinds = function->kinds;
    PyObject *values[MOST_ARGUMENTS + 4], *result = NULL;
    Py_ssize_t count = 0;
    PyObject *timer = process->timer == Py_None ? NULL : process->timer;
    if (timer != NULL)
        Py_XDECREF(PyObject_CallMethodNoArgs(timer, arrive));
    uintptr_t site = (uintptr_t)process->site - process->base;
    values[0] = PyLong_FromSsize_t(process->size && site < process->size ? (Py_ssize_t)site | process->number : 0);
    if (process->refused)
        Py_XDECREF(PyObject_CallMethod(missing, "thread", NULL));
    else if (values[0] != NULL) {
        count = 1;
        for (; *kinds; kinds++, count++) {
            values[count] = argument(process, *kinds, self->arguments[count - 1]);
            if (values[count] == NULL)
                break;
        }
        if (!*kinds)
            result = PyObject_Vectorcall(handler, values, (size_t)count, NULL);
        else if (!PyErr_Occurred()) /* a handle is not valid: an error of MPI */
            result = PyObject_CallMethod(missing, "refuse", "iOCI", self->number, values[0], *kinds,
                                         (unsigned)self->arguments[count - 1]);
    }
    while (count > 0)
        Py_DECREF(values[--count]);
    if (timer != NULL) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        Py_XDECREF(PyObject_CallMethodNoArgs(timer, leave_name));
        PyErr_Restore(type, value, trace);
    }
    if (result == NULL) {
        self->failed = 1;
        return;
    }
    if (result == Py_None)
        self->result = 0;
    else if (PyFloat_CheckExact(result))
        self->real = PyFloat_AS_DOUBLE(result);
    else {
        self->result = PyLong_AsLongLong(result);
        if (self->result == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            self->result = (long long)PyLong_AsUnsignedLongLong(result);
        }
    }
    Py_DECREF(result);
    self->failed = PyErr_Occurred() != NULL;
}

static void
dispatch(void *pointer)
{
    call *self = pointer;
    Process *process = self->process;
    call own = *self;
    uninstall(process);
    serve(&own, PyList_GET_ITEM(handlers, own.number));
    if (!own.failed) {
        *self = own;
        return;
    }
    /* The stack of the program, with `self`, may be in use again. */
    if (process->jumping && process->landed < process->frames->top) {
        PyErr_Clear();
        process->jumping = 0;
        install(process);
        _longjmp(*process->resume, 1);
    }
    leave(process);
}

static void
say(const char *text)
{
    if (write(2, text, strlen(text)) < 0)
        abort();
}

/* End the rank whose library has called, with the exception that is set. */
static void
end_rank(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    PyObject *result = PyObject_CallMethod(missing, "end", "O", value); /* does not return */
    if (result == NULL)
        PyErr_Print();
    say("pysmpi: a library called MPI outside of a rank\n");
    abort();
}

/* The process of the rank whose library calls; NULL if there is none. The rank keeps it. */
static Process *
process_of_library(void)
{
    if (missing == NULL || elsewhere() || !Py_IsInitialized())
        return NULL;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *process = PyObject_CallMethod(missing, "process", NULL);
    Py_XDECREF(process);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(lock);
    return process == Py_None ? NULL : (Process *)process;
}

/* Serve a call of a library, which runs below frames of Python. */
static void
enter_directly(call *self)
{
    self->result = self->number < PSM_FIRST ? -1 : 16; /* ERR_OTHER */
    if (missing == NULL || !Py_IsInitialized())
        return;
    PyGILState_STATE lock = PyGILState_Ensure();
    int error = errno;
    PyObject *type, *value, *trace, *process;
    PyErr_Fetch(&type, &value, &trace);
    process = PyObject_CallMethod(missing, "process", NULL);
    if (process == NULL) /* at the end of Python */
        PyErr_Clear();
    else if (process != Py_None) {
        self->process = (Process *)process;
        serve(self, PyList_GET_ITEM(direct, self->number));
        if (self->failed)
            end_rank();
    }
    Py_XDECREF(process);
    PyErr_Restore(type, value, trace);
    errno = error;
    PyGILState_Release(lock);
}

static void
enter(call *self, void *site)
{
    if (elsewhere()) {
        Process *owner = owner_of((uintptr_t)site);
        if (owner != NULL)
            owner->refused = 1; /* ends its rank */
        else
            say("pysmpi: a thread that is not the main one called MPI, which only the main thread of "
                "a rank can do here\n");
        self->result = 16; /* ERR_OTHER */
        return;
    }
    Process *process = caller();
    if (process == NULL) {
        enter_directly(self);
        return;
    }
    if (process->on_own)
        settle(process, (uintptr_t)__builtin_frame_address(0));
    self->process = process;
    process->site = site;
    if (process->on_own) {
        process->on_own = 0;
        void *top = (void *)(((uintptr_t)process->threads - BELOW) & ~(uintptr_t)15);
        psm_on_stack(top, dispatch, self, &process->own);
        process->on_own = 1;
    } else {
        process->loading = 0;
        dispatch(self);
        process->loading = 1;
    }
    install(process);
}

long long
psm_call(int number, const long long *arguments, void *site)
{
    call self = {NULL, number, arguments, 0, 0.0, 0};
    enter(&self, site);
    return self.result;
}

double
psm_real(int number, const long long *arguments, void *site)
{
    call self = {NULL, number, arguments, 0, 0.0, 0};
    enter(&self, site);
    return self.real;
}

#define PYTHON(number, ...)                                                                        \
    psm_call(number, (const long long[]){__VA_ARGS__, 0}, __builtin_return_address(0))

/* What a program calls in place of functions of the C library. */

static void
call_endings(Process *process)
{
    while (process->endings != NULL) {
        ending *last = process->endings;
        process->endings = last->next;
        last->function(last->argument);
        free(last);
    }
}

static void
finish(int status, int quick)
{
    Process *process = caller();
    if (process == NULL) { /* a library ends its rank as `sys.exit` and `os._exit` do */
        if (elsewhere())
            _exit(status);
        PYTHON(PSM_EXIT, status, quick);
    }
    if (!quick)
        call_endings(process);
    for (int i = 1; i < 3 && !quick; i++)
        if (process->streams[i] != NULL)
            fflush(process->streams[i]);
    process->status = status;
    process->ended = 1;
    leave(process);
}

static void own_exit(int status) { finish(status & 0xff, 0); }
static void own_quick_exit(int status) { finish(status & 0xff, 1); }

static void
own_abort(void)
{
    if (elsewhere())
        abort();
    PYTHON(PSM_ABORT, 0);
    finish(134, 1);
}

static int
own_cxa_atexit(void (*function)(void *), void *value, void *library)
{
    ending *made = malloc(sizeof *made);
    Process *process = caller();
    (void)library;
    if (made == NULL || process == NULL) {
        free(made);
        return -1;
    }
    *made = (ending){process->endings, function, value};
    process->endings = made;
    return 0;
}

/* What programs call under this name, see elf.py. */
__attribute__((visibility("default"))) int
psmxa_atexit(void (*function)(void *), void *value, void *library)
{
    return own_cxa_atexit(function, value, library);
}

static void call_plain(void *function) { ((void (*)(void))function)(); }

static int
own_atexit(void (*function)(void))
{
    return own_cxa_atexit(call_plain, (void *)function, NULL);
}

static int
own_start_main(int (*program)(int, char **, char **), int count, char **words)
{
    finish(program(count, words, words + count + 1) & 0xff, 0);
    return 0;
}

static int
own_clock_gettime(clockid_t clock, struct timespec *result)
{
    long long now = elsewhere() ? -1 : PYTHON(PSM_CLOCK, clock);
    if (now < 0)
        return clock_gettime(clock, result);
    result->tv_sec = now / 1000000000;
    result->tv_nsec = now % 1000000000;
    return 0;
}

static int
own_gettimeofday(struct timeval *result, void *zone)
{
    struct timespec now;
    (void)zone;
    own_clock_gettime(CLOCK_REALTIME, &now);
    result->tv_sec = now.tv_sec;
    result->tv_usec = now.tv_nsec / 1000;
    return 0;
}

static time_t
own_time(time_t *result)
{
    struct timespec now;
    own_clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL)
        *result = now.tv_sec;
    return now.tv_sec;
}

/* `now` of the clocks of C++, which the library of C++ reads. */
static long long
own_cxx_clock(clockid_t clock)
{
    struct timespec now;
    own_clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long own_steady_clock(void) { return own_cxx_clock(CLOCK_MONOTONIC); }
static long long own_system_clock(void) { return own_cxx_clock(CLOCK_REALTIME); }

static clock_t
own_clock(void)
{
    struct timespec now;
    own_clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (1000000000 / CLOCKS_PER_SEC);
}

static int
own_nanosleep(const struct timespec *wanted, struct timespec *rest)
{
    if (elsewhere())
        return nanosleep(wanted, rest);
    PYTHON(PSM_SLEEP, wanted->tv_sec * 1000000000LL + wanted->tv_nsec);
    if (rest != NULL)
        rest->tv_sec = rest->tv_nsec = 0;
    return 0;
}

static int
own_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *rest)
{
    if (elsewhere())
        return clock_nanosleep(clock, flags, wanted, rest);
    long long length = wanted->tv_sec * 1000000000LL + wanted->tv_nsec;
    if (flags & TIMER_ABSTIME)
        length -= PYTHON(PSM_CLOCK, clock);
    PYTHON(PSM_SLEEP, length > 0 ? length : 0);
    if (rest != NULL)
        rest->tv_sec = rest->tv_nsec = 0;
    return 0;
}

static unsigned
own_sleep(unsigned seconds)
{
    if (elsewhere())
        return sleep(seconds);
    PYTHON(PSM_SLEEP, seconds * 1000000000LL);
    return 0;
}

static int
own_usleep(useconds_t length)
{
    if (elsewhere())
        return usleep(length);
    PYTHON(PSM_SLEEP, length * 1000LL);
    return 0;
}

static char *
own_getenv(const char *name)
{
    size_t length = strlen(name);
    char **entry = running != NULL ? running->variables : environ;
    for (; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* Variables of the process: entries that the program adds stay, as others may point to them. */

static char **
variable(const char *name, size_t length)
{
    char **entry = running->variables;
    while (*entry != NULL && !(strncmp(*entry, name, length) == 0 && (*entry)[length] == '='))
        entry++;
    return entry;
}

static int
own_putenv(char *text)
{
    const char *end = strchr(text, '=');
    if (end == NULL)
        return -1;
    char **entry = variable(text, (size_t)(end - text));
    if (*entry == NULL) {
        size_t count = (size_t)(entry - running->variables);
        char **longer = malloc((count + 2) * sizeof *longer);
        if (longer == NULL)
            return -1;
        memcpy(longer, running->variables, count * sizeof *longer);
        longer[count + 1] = NULL;
        running->variables = longer;
        entry = longer + count;
    }
    *entry = text;
    return 0;
}

static int
own_setenv(const char *name, const char *value, int overwrite)
{
    if (name == NULL || *name == 0 || strchr(name, '=') != NULL) {
        errno = EINVAL;
        return -1;
    }
    size_t length = strlen(name);
    if (!overwrite && *variable(name, length) != NULL)
        return 0;
    char *text = malloc(length + strlen(value) + 2);
    if (text == NULL)
        return -1;
    sprintf(text, "%s=%s", name, value);
    return own_putenv(text);
}

static int
own_unsetenv(const char *name)
{
    char **entry = variable(name, strlen(name));
    for (; *entry != NULL; entry++)
        *entry = entry[1];
    return 0;
}

static int
own_clearenv(void)
{
    *running->variables = NULL;
    return 0;
}

static pid_t
own_getpid(void)
{
    return elsewhere() ? getpid() : (pid_t)PYTHON(PSM_GETPID, 0);
}

static int
own_gethostname(char *name, size_t length)
{
    if (elsewhere())
        return gethostname(name, length);
    return (int)PYTHON(PSM_HOSTNAME, (intptr_t)name, (long long)length);
}

typedef struct {
    const char *name;
    void *function;
} replacement;

static const replacement REPLACED[] = {
    {"exit", (void *)own_exit},
    {"_exit", (void *)own_quick_exit},
    {"_Exit", (void *)own_quick_exit},
    {"quick_exit", (void *)own_quick_exit},
    {"abort", (void *)own_abort},
    {"clock_gettime", (void *)own_clock_gettime},
    {"gettimeofday", (void *)own_gettimeofday},
    {"time", (void *)own_time},
    {"clock", (void *)own_clock},
    {"_ZNSt6chrono3_V212steady_clock3nowEv", (void *)own_steady_clock},
    {"_ZNSt6chrono3_V212system_clock3nowEv", (void *)own_system_clock},
    {"nanosleep", (void *)own_nanosleep},
    {"clock_nanosleep", (void *)own_clock_nanosleep},
    {"sleep", (void *)own_sleep},
    {"usleep", (void *)own_usleep},
    {"getpid", (void *)own_getpid},
    {"gethostname", (void *)own_gethostname},
    {NULL, NULL},
};

/* Of programs only: in a rank with a program of Python, these belong to Python. */
static const replacement OF_PROGRAMS[] = {
    {"__cxa_atexit", (void *)own_cxa_atexit},
    {"atexit", (void *)own_atexit},
    {"__libc_start_main", (void *)own_start_main},
    {"getenv", (void *)own_getenv},
    {"secure_getenv", (void *)own_getenv},
    {"putenv", (void *)own_putenv},
    {"setenv", (void *)own_setenv},
    {"unsetenv", (void *)own_unsetenv},
    {"clearenv", (void *)own_clearenv},
    {NULL, NULL},
};

/* The functions that a loaded library calls, replaced where they are ours. */

static void *
replacing(const replacement *table, const char *name)
{
    for (; table->name != NULL; table++)
        if (strcmp(name, table->name) == 0)
            return table->function;
    return NULL;
}

/* Ours of a name; functions of MPI too, as another MPI library may have come first. */
/* Of the library of Fortran, which all ranks share: they end, write and read clocks as their programs
   do. Outside of programs, it does what it always does. */

static int inside(void) { return running != NULL && running->on_own && pthread_equal(pthread_self(), thread); }

static void
shared_exit(int status)
{
    if (inside())
        own_exit(status);
    exit(status);
}

static void
shared_abort(void)
{
    if (inside())
        own_abort();
    abort();
}

static ssize_t
shared_write(int descriptor, const void *data, size_t size)
{
    if (inside() && (descriptor == 1 || descriptor == 2))
        return (ssize_t)PYTHON(PSM_WRITE, descriptor, (intptr_t)data, (long long)size);
    return write(descriptor, data, size);
}

static ssize_t
shared_read(int descriptor, void *data, size_t size)
{
    if (inside() && descriptor == 0)
        return (ssize_t)PYTHON(PSM_READ, descriptor, (intptr_t)data, (long long)size);
    return read(descriptor, data, size);
}

static int
shared_clock_gettime(clockid_t clock, struct timespec *result)
{
    return inside() ? own_clock_gettime(clock, result) : clock_gettime(clock, result);
}

static int
shared_gettimeofday(struct timeval *result, void *zone)
{
    return inside() ? own_gettimeofday(result, zone) : gettimeofday(result, zone);
}

static const replacement OF_FORTRAN[] = {
    {"exit", (void *)shared_exit},
    {"abort", (void *)shared_abort},
    {"write", (void *)shared_write},
    {"read", (void *)shared_read},
    {"clock_gettime", (void *)shared_clock_gettime},
    {"gettimeofday", (void *)shared_gettimeofday},
    {NULL, NULL},
};

#define FORTRAN_LIBRARY 2

static void *
ours_of(const char *name, int program, void *library)
{
    if (program == FORTRAN_LIBRARY)
        return replacing(OF_FORTRAN, name);
    if (strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0)
        return library != NULL ? dlsym(library, name) : NULL;
    void *function = replacing(REPLACED, name);
    return function != NULL || !program ? function : replacing(OF_PROGRAMS, name);
}

static int
replace(ElfW(Addr) base, const ElfW(Rela) *entries, size_t bytes, const ElfW(Sym) *symbols,
        const char *names, int program, void *library)
{
    long page = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < bytes / sizeof *entries; i++) {
        unsigned type = ELF64_R_TYPE(entries[i].r_info);
        if (type != JUMP_SLOT && type != GLOB_DAT && type != ADDRESS)
            continue;
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(entries[i].r_info)];
        if (symbol->st_shndx != SHN_UNDEF) /* its own functions and stubs */
            continue;
        void *function = ours_of(names + symbol->st_name, program, library);
        if (function == NULL)
            continue;
        void **slot = (void **)(base + entries[i].r_offset);
        void *start = (void *)((uintptr_t)slot & ~(uintptr_t)(page - 1));
        if (mprotect(start, (size_t)page, PROT_READ | PROT_WRITE) != 0)
            return -1;
        *slot = (char *)function + (type == ADDRESS ? entries[i].r_addend : 0);
    }
    return 0;
}

static int
redirect(const struct link_map *map, int program)
{
    const ElfW(Rela) *entries[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const char *interface = "psm_mpich.so";
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++)
        switch (each->d_tag) {
        case DT_JMPREL: entries[0] = (const void *)each->d_un.d_ptr; break;
        case DT_PLTRELSZ: bytes[0] = each->d_un.d_val; break;
        case DT_RELA: entries[1] = (const void *)each->d_un.d_ptr; break;
        case DT_RELASZ: bytes[1] = each->d_un.d_val; break;
        case DT_SYMTAB: symbols = (const void *)each->d_un.d_ptr; break;
        case DT_STRTAB: names = (const void *)each->d_un.d_ptr; break;
        }
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++)
        if (each->d_tag == DT_NEEDED
            && (strcmp(names + each->d_un.d_val, "psm_ompi.so") == 0
                || strcmp(names + each->d_un.d_val, "psm_std.so") == 0))
            interface = names + each->d_un.d_val;
    void *library = dlopen(interface, RTLD_NOLOAD | RTLD_LAZY);
    for (int i = 0; i < 2; i++)
        if (entries[i] != NULL && replace(map->l_addr, entries[i], bytes[i], symbols, names, program, library) < 0)
            return -1;
    return 0;
}

/* The streams of a rank: what it writes goes to Python. */

static ssize_t
write_stream(void *cookie, const char *data, size_t size)
{
    if (running == NULL)
        return write((int)(intptr_t)cookie, data, size);
    return (ssize_t)PYTHON(PSM_WRITE, (intptr_t)cookie, (intptr_t)data, (long long)size);
}

static ssize_t
read_stream(void *cookie, char *data, size_t size)
{
    return (ssize_t)PYTHON(PSM_READ, (intptr_t)cookie, (intptr_t)data, (long long)size);
}

static FILE *
stream(int descriptor, int buffering)
{
    cookie_io_functions_t functions = {read_stream, write_stream, NULL, NULL};
    FILE *made = fopencookie((void *)(intptr_t)descriptor, descriptor == 0 ? "r" : "w", functions);
    if (made != NULL)
        setvbuf(made, NULL, buffering, BUFSIZ);
    return made;
}

/* Remove the destructors of a library: they are for programs that have ended on their own. */

static void nothing(void) {}

static int
disarm(void *library)
{
    struct link_map *map;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return -1;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++) {
        if (each->d_tag != DT_FINI && each->d_tag != DT_FINI_ARRAYSZ)
            continue;
        uintptr_t start = (uintptr_t)each & ~(page - 1);
        if (mprotect((void *)start, (uintptr_t)(each + 1) - start, PROT_READ | PROT_WRITE) != 0)
            return -1;
        if (each->d_tag == DT_FINI)
            each->d_un.d_ptr = (uintptr_t)nothing - map->l_addr;
        else
            each->d_un.d_val = 0;
    }
    return 0;
}

/* The type of processes. */

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
    processes = self;
    pthread_mutex_unlock(&processes_lock);
    return (PyObject *)self;
}

static void
process_dealloc(Process *self)
{
    pthread_mutex_lock(&processes_lock);
    for (Process **each = &processes; *each != NULL; each = &(*each)->next)
        if (*each == self) {
            *each = self->next;
            break;
        }
    pthread_mutex_unlock(&processes_lock);
    while (self->endings != NULL) {
        ending *last = self->endings;
        self->endings = last->next;
        free(last);
    }
    /* No rank can have a buffer in it any more; but a thread that was refused may still run. */
    if (self->library != NULL && !self->refused && (self->ended || disarm(self->library) == 0))
        dlclose(self->library);
    if (self->stack != NULL)
        munmap(self->stack, self->length);
    for (int i = 0; i < PSM_SLOTS; i++)
        free(self->slots[i]);
    Py_XDECREF(self->objects);
    Py_XDECREF(self->timer);
    Py_XDECREF(self->files);
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
    self->variables = top + 2 + argc;
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
    frame outermost = {.top = UINTPTR_MAX};
    self->frames = &outermost;
    if (programs++ == 0)
        catch_faults();
    if (_setjmp(outermost.leave) == 0) {
        self->on_own = 1;
        install(self);
        /* The entry point does not return, so it needs no stack but its own. */
        psm_on_stack((char *)top - 64, begin, &first, &self->threads);
    }
    uninstall(self);
    running = NULL;
    self->frames = NULL;
    if (--programs == 0)
        release_faults();
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

/* load(path, stdout, stderr, number, size): load a copy of a program; its base address. */
static PyObject *
process_load(Process *self, PyObject *args)
{
    const char *path;
    int buffering[2];
    Py_ssize_t number, size;
    if (!PyArg_ParseTuple(args, "siinn", &path, &buffering[0], &buffering[1], &number, &size))
        return NULL;
    frame outermost = {.top = UINTPTR_MAX};
    for (int i = 0; i < 3; i++)
        self->streams[i] = stream(i, i == 0 ? _IOFBF : buffering[i - 1]);
    self->frames = &outermost;
    if (_setjmp(outermost.leave) == 0) {
        install(self);
        self->loading = 1;
        self->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    self->loading = 0;
    uninstall(self);
    running = NULL;
    self->frames = NULL;
    if (PyErr_Occurred())
        return NULL;
    struct link_map *map;
    if (self->library == NULL || dlinfo(self->library, RTLD_DI_LINKMAP, &map) != 0) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    if (redirect(map, 1) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    psm_copy_objects(map);
    self->base = (uintptr_t)map->l_addr;
    self->size = (size_t)size;
    self->number = number;
    return PyLong_FromSsize_t((Py_ssize_t)map->l_addr);
}

/* close(): close the streams, after the end of the program. */
static PyObject *
process_close(Process *self, PyObject *Py_UNUSED(args))
{
    fflush(ours[1]); /* of libraries that ranks share, such as that of C++ */
    for (int i = 0; i < 3; i++)
        if (self->streams[i] != NULL) {
            fclose(self->streams[i]);
            self->streams[i] = NULL;
        }
    Py_RETURN_NONE;
}

static PyMemberDef process_members[] = {
    {"timer", T_OBJECT, offsetof(Process, timer), 0, NULL},
    {NULL},
};

static PyMethodDef process_methods[] = {
    {"load", (PyCFunction)process_load, METH_VARARGS, NULL},
    {"run", (PyCFunction)process_run, METH_VARARGS, NULL},
    {"call", (PyCFunction)process_call, METH_VARARGS, NULL},
    {"close", (PyCFunction)process_close, METH_NOARGS, NULL},
    {NULL},
};

static PyTypeObject ProcessType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pysmpi.abi.engine.Process",
    .tp_basicsize = sizeof(Process),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = process_new,
    .tp_dealloc = (destructor)process_dealloc,
    .tp_methods = process_methods,
    .tp_members = process_members,
};

/* Libraries of ranks. */

/* open(path, ours): load a library; its lowest address. If it is ours, so are its calls of MPI. */
static PyObject *
open_library(PyObject *module, PyObject *args)
{
    const char *name;
    int mine = 1;
    if (!PyArg_ParseTuple(args, "s|p", &name, &mine))
        return NULL;
    struct link_map *map;
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    if (mine && redirect(map, 0) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromUnsignedLongLong((unsigned long long)map->l_addr);
}

/* share(copy, original, address, offset, size, executable): map a part of a loaded copy from the
   original file, and free the memory that it took. */
static PyObject *
share(PyObject *module, PyObject *args)
{
    int copy, original, executable;
    Py_ssize_t address, offset, size;
    if (!PyArg_ParseTuple(args, "iinnnp", &copy, &original, &address, &offset, &size, &executable))
        return NULL;
    int protection = PROT_READ | (executable ? PROT_EXEC : 0);
    if (mmap((void *)address, (size_t)size, protection, MAP_PRIVATE | MAP_FIXED, original, offset) ==
        MAP_FAILED)
        return PyErr_SetFromErrno(PyExc_OSError);
    fallocate(copy, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
    Py_RETURN_NONE;
}

/* export(): let libraries that name no MPI library use this one. */
static PyObject *
export_functions(PyObject *module, PyObject *Py_UNUSED(args))
{
    if (dlopen("psm_mpich.so", RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL) == NULL) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    Py_RETURN_NONE;
}

/* stack(): the addresses of the stack of the thread, from the caller's frame to its end. */
static PyObject *
stack_of_thread(PyObject *module, PyObject *Py_UNUSED(args))
{
    extern void *__libc_stack_end;
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    uintptr_t high = (uintptr_t)low + size, begin = (uintptr_t)__libc_stack_end;
    if (begin > (uintptr_t)low && begin < high) /* above are arguments and variables */
        high = begin;
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)low, (unsigned long long)high);
}

/* Memory of programs. */

static PyObject *
view(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *address = PyLong_AsVoidPtr(args[0]);
    Py_ssize_t size = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred())
        return NULL;
    return PyMemoryView_FromMemory(address, size, PyBUF_WRITE);
}

static PyObject *
write_integer(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    void *address = PyLong_AsVoidPtr(args[0]);
    long long value = (long long)PyLong_AsUnsignedLongLongMask(args[1]);
    long size = count > 2 ? PyLong_AsLong(args[2]) : 4;
    if (PyErr_Occurred())
        return NULL;
    if (running != NULL && running->jumping) /* the memory may be in use again */
        Py_RETURN_NONE;
    if (size == 4)
        *(int32_t *)address = (int32_t)value;
    else
        *(int64_t *)address = value;
    Py_RETURN_NONE;
}

static PyObject *
write_integers(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    char *address = PyLong_AsVoidPtr(args[0]);
    PyObject *values = PySequence_Fast(args[1], "expected a sequence");
    long size = count > 2 ? PyLong_AsLong(args[2]) : 4;
    if (values == NULL)
        return NULL;
    Py_ssize_t number = running != NULL && running->jumping ? 0 : PySequence_Fast_GET_SIZE(values);
    for (Py_ssize_t i = 0; i < number; i++) {
        long long value = (long long)PyLong_AsUnsignedLongLongMask(PySequence_Fast_GET_ITEM(values, i));
        if (size == 4)
            ((int32_t *)address)[i] = (int32_t)value;
        else
            ((int64_t *)address)[i] = value;
    }
    Py_DECREF(values);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
read_integers(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    const char *address = PyLong_AsVoidPtr(args[0]);
    Py_ssize_t number = PyLong_AsSsize_t(args[1]);
    long size = count > 2 ? PyLong_AsLong(args[2]) : 4;
    if (PyErr_Occurred())
        return NULL;
    PyObject *made = PyList_New(number < 0 ? 0 : number);
    for (Py_ssize_t i = 0; made != NULL && i < number; i++) {
        long long value = size == 4 ? ((const int32_t *)address)[i] : ((const int64_t *)address)[i];
        PyObject *item = PyLong_FromLongLong(value);
        if (item == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, item);
    }
    return made;
}

static PyObject *
read_handles(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    const uint32_t *address = PyLong_AsVoidPtr(args[0]);
    Py_ssize_t number = PyLong_AsSsize_t(args[1]);
    long kind = PyLong_AsLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *process = PyObject_CallMethod(missing, "process", NULL);
    if (process == NULL)
        return NULL;
    PyObject *made = PyList_New(number < 0 ? 0 : number);
    for (Py_ssize_t i = 0; made != NULL && i < number; i++) {
        PyObject *item = argument((Process *)process, (char)kind, address[i]);
        if (item == NULL && !PyErr_Occurred())
            item = PyObject_CallMethod(missing, "fail", "CI", (int)kind, address[i]);
        if (item == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, item);
    }
    Py_DECREF(process);
    return made;
}

static PyObject *
read_text(PyObject *module, PyObject *value)
{
    const char *address = PyLong_AsVoidPtr(value);
    if (PyErr_Occurred())
        return NULL;
    return PyBytes_FromString(address == NULL ? "" : address);
}

static PyObject *
start(PyObject *module, PyObject *args)
{
    PyObject *list, *other, *finder;
    if (!PyArg_ParseTuple(args, "O!O!O", &PyList_Type, &list, &PyList_Type, &other, &finder))
        return NULL;
    if (PyList_GET_SIZE(list) != PSM_FUNCTIONS || PyList_GET_SIZE(other) != PSM_FUNCTIONS) {
        PyErr_SetString(PyExc_ValueError, "expected a handler for each function");
        return NULL;
    }
    Py_XSETREF(handlers, Py_NewRef(list));
    Py_XSETREF(direct, Py_NewRef(other));
    Py_XSETREF(missing, Py_NewRef(finder));
    Py_XSETREF(arrive, PyUnicode_InternFromString("arrive"));
    Py_XSETREF(leave_name, PyUnicode_InternFromString("leave"));
    thread = pthread_self();
    for (int i = 0; i < 3; i++)
        ours[i] = *usual[i];
    Py_RETURN_NONE;
}

/* stop(): no function of Python can be called any more, though libraries may call at their end. */
static PyObject *
stop(PyObject *module, PyObject *Py_UNUSED(args))
{
    missing = NULL;
    Py_RETURN_NONE;
}

static PyObject *
functions(PyObject *module, PyObject *Py_UNUSED(args))
{
    PyObject *made = PyList_New(PSM_FUNCTIONS);
    for (int i = 0; made != NULL && i < PSM_FUNCTIONS; i++) {
        PyObject *name = PyUnicode_FromString(psm_functions[i].name);
        if (name == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, i, name);
    }
    return made;
}

extern int *const MPI_UNWEIGHTED, *const MPI_WEIGHTS_EMPTY;

static PyObject *
constants(PyObject *module, PyObject *Py_UNUSED(args))
{
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)MPI_UNWEIGHTED,
                         (unsigned long long)(uintptr_t)MPI_WEIGHTS_EMPTY);
}

/* adopt(path): let the loaded library of Fortran serve the ranks of programs. */
static PyObject *
adopt(PyObject *module, PyObject *args)
{
    const char *path;
    struct link_map *map;
    if (!PyArg_ParseTuple(args, "s", &path))
        return NULL;
    void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    if (redirect(map, FORTRAN_LIBRARY) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static void **
slot(int number)
{
    Process *process = caller();
    if (process == NULL)
        process = process_of_library();
    return process != NULL ? &process->slots[number] : NULL;
}

static void *program(void) { return running != NULL ? running->library : NULL; }

/* core(): the address of what libraries of other binary interfaces need. */
static PyObject *
core(PyObject *module, PyObject *Py_UNUSED(args))
{
    static psm_core functions = {psm_call, psm_real, slot, program, psm_closure_of, NULL, NULL};
    functions.unweighted = (void *)MPI_UNWEIGHTED;
    functions.empty = (void *)MPI_WEIGHTS_EMPTY;
    return PyLong_FromVoidPtr(&functions);
}

static PyMethodDef methods[] = {
    {"adopt", adopt, METH_VARARGS, NULL},
    {"core", core, METH_NOARGS, NULL},
    {"constants", constants, METH_NOARGS, NULL},
    {"open", open_library, METH_VARARGS, NULL},
    {"share", share, METH_VARARGS, NULL},
    {"export", export_functions, METH_NOARGS, NULL},
    {"stack", stack_of_thread, METH_NOARGS, NULL},
    {"view", (PyCFunction)(void (*)(void))view, METH_FASTCALL, NULL},
    {"write_integer", (PyCFunction)(void (*)(void))write_integer, METH_FASTCALL, NULL},
    {"write_integers", (PyCFunction)(void (*)(void))write_integers, METH_FASTCALL, NULL},
    {"read_integers", (PyCFunction)(void (*)(void))read_integers, METH_FASTCALL, NULL},
    {"read_handles", (PyCFunction)(void (*)(void))read_handles, METH_FASTCALL, NULL},
    {"read_text", read_text, METH_O, NULL},
    {"start", start, METH_VARARGS, NULL},
    {"stop", stop, METH_NOARGS, NULL},
    {"functions", functions, METH_NOARGS, NULL},
    {NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "engine", NULL, -1, methods};

PyMODINIT_FUNC
PyInit_engine(void)
{
    PyObject *made;
    if (PyType_Ready(&ProcessType) < 0 || (made = PyModule_Create(&module)) == NULL)
        return NULL;
    if (PyModule_AddObjectRef(made, "Process", (PyObject *)&ProcessType) < 0)
        Py_CLEAR(made);
    return made;
}
