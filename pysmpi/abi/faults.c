/* Faults and interruptions of programs, and faults of libraries that ranks in Python call. */

#include "process.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

/* A fault of a program ends its rank, not the process that simulates. */

static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define FAULT_KINDS (sizeof FAULTS / sizeof *FAULTS)
static struct sigaction outer_actions[FAULT_KINDS];
static char handler_stack[256 * 1024];
static int programs; /* that run or wait */
static int watchers; /* of faults: these, and ranks in Python with libraries that call MPI */

static uintptr_t
instruction(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

static uintptr_t
stack_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#else
    return (uintptr_t)context->uc_mcontext.sp;
#endif
}

/* The function of a program that has called the one with a fault, by a walk along the stack. */

typedef struct {
    const Process *process;
    uintptr_t found;
} search;

static _Unwind_Reason_Code
look_at_frame(struct _Unwind_Context *frame, void *pointer)
{
    search *self = pointer;
    const uintptr_t at = _Unwind_GetIP(frame);
    if (image_at(self->process, at) == NULL)
        return _URC_NO_REASON;
    self->found = at;
    return _URC_END_OF_STACK;
}

static volatile sig_atomic_t walking;
static sigjmp_buf walked;

static uintptr_t
calling_function(const Process *process)
{
    search self = {process, 0};
    walking = 1;
    if (_setjmp(walked) == 0) /* the stack may be damaged */
        _Unwind_Backtrace(look_at_frame, &self);
    walking = 0;
    return self.found;
}

/* A fault of a library below frames of Python: the rank ends as by an exception of the call. */

static struct {
    int number;
    uintptr_t at;
} library_fault;

static void
end_faulty_rank(void)
{
    const int number = library_fault.number;
    PyGILState_STATE lock = PyGILState_Ensure();
    Dl_info place = {0};
    dladdr((void *)library_fault.at, &place);
    PyErr_Clear();
    PyObject *result = PyObject_CallMethod(
        missing, "crash", "iznz", number, place.dli_fname,
        (Py_ssize_t)(library_fault.at - (uintptr_t)place.dli_fbase), place.dli_sname);
    if (result == NULL && PyErr_Occurred())
        end_rank(); /* does not return */
    PyGILState_Release(lock);
    for (size_t i = 0; i < FAULT_KINDS; i++) /* no rank runs: as without us */
        if (FAULTS[i] == number)
            sigaction(number, &outer_actions[i], NULL);
    raise(number);
    abort();
}

/* Let the thread continue in `end_faulty_rank`, as if the instruction with the fault had called it. */
static void
divert(ucontext_t *context)
{
    const uintptr_t top = (stack_pointer(context) - BELOW) & ~(uintptr_t)15;
#if defined(__x86_64__)
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)(top - sizeof(void *));
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)end_faulty_rank;
#else
    context->uc_mcontext.sp = top;
    context->uc_mcontext.pc = (uintptr_t)end_faulty_rank;
#endif
}

/* A fault of a thread that is not the main one: its rank ends, or the process, with a reason. */

static _Unwind_Reason_Code
look_for_owner(struct _Unwind_Context *frame, void *pointer)
{
    Process **owner = pointer;
    *owner = owner_of(_Unwind_GetIP(frame));
    return *owner == NULL ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void
fault_elsewhere(int number, uintptr_t at, uintptr_t address)
{
    static __thread int again; /* the walk fails if the stack is damaged */
    Process *owner = NULL;
    if (!again++) {
        owner = owner_of(at);
        if (owner == NULL)
            _Unwind_Backtrace(look_for_owner, &owner);
    }
    if (owner != NULL) {
        owner->at = at;
        owner->fault = address;
        owner->caller = 0;
        owner->crash = number;
        park();
    }
    if (refused_here) {
        static const char text[] =
            "pysmpi: error: this thread of a library went on after its call of MPI was refused, and had "
            "a fault; let the library use one thread (PT-Scotch: SCOTCH_PTHREAD_NUMBER=1)\n";
        if (write(2, text, sizeof text - 1) > 0)
            _exit(3);
    }
}

static void
fault(int number, siginfo_t *info, void *pointer)
{
    ucontext_t *context = pointer;
    Process *process = running;
    const int ours = pthread_equal(pthread_self(), thread);
    if (ours && walking)
        _longjmp(walked, 1);
    if (ours && process != NULL && process->on_own) {
        process->crash = number;
        process->at = instruction(context);
        process->fault = (uintptr_t)info->si_addr;
        process->caller = image_at(process, process->at) == NULL ? calling_function(process) : 0;
        leave(process);
    }
    if (!ours)
        fault_elsewhere(number, instruction(context), (uintptr_t)info->si_addr);
    const uintptr_t distance = stack_pointer(context) - (uintptr_t)info->si_addr;
    const int overflow = number == SIGSEGV && distance < GUARD;
    if (ours && missing != NULL && !overflow && Py_IsInitialized() && library_fault.number == 0) {
        library_fault.number = number;
        library_fault.at = instruction(context);
        divert(context);
        return;
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
    /* It may wait for the thread that was refused. */
    if (process->refused || process->crash)
        leave(process);
    if (process->leaving)
        finish(process->status, process->leaving == 2);
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

void
watch_faults(void)
{
    if (watchers++ != 0)
        return;
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    struct sigaction action = {.sa_sigaction = fault};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    library_fault.number = 0;
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < FAULT_KINDS; i++)
        sigaction(FAULTS[i], &action, &outer_actions[i]);
}

void
ignore_faults(void)
{
    if (--watchers == 0)
        for (size_t i = 0; i < FAULT_KINDS; i++)
            sigaction(FAULTS[i], &outer_actions[i], NULL);
}

void
begin_program(void)
{
    watch_faults();
    if (programs++ == 0)
        start_ticks();
}

void
end_program(void)
{
    ignore_faults();
    if (--programs == 0)
        stop_ticks();
}

static Py_ssize_t
place_of(const Process *self, uintptr_t address)
{
    const image *code = image_at(self, address);
    return code != NULL ? (Py_ssize_t)(address - code->base) | code->number : 0;
}

PyObject *
crashed(Process *self)
{
    const int full = self->fault - (uintptr_t)self->stack < GUARD;
    Dl_info library = {0};
    dladdr((void *)self->at, &library);
    return Py_BuildValue("inniss", -self->crash, place_of(self, self->at + 1),
                         self->caller ? place_of(self, self->caller) : (Py_ssize_t)0, full,
                         library.dli_fname, library.dli_sname);
}
