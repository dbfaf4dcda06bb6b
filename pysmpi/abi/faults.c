/* Faults and interruptions of programs. */

#include "process.h"
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

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

void
catch_faults(void)
{
    if (programs++ != 0)
        return;
    start_ticks();
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    struct sigaction action = {.sa_sigaction = fault};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < FAULT_KINDS; i++)
        sigaction(FAULTS[i], &action, &outer_actions[i]);
}

void
release_faults(void)
{
    if (--programs != 0)
        return;
    stop_ticks();
    for (size_t i = 0; i < FAULT_KINDS; i++)
        sigaction(FAULTS[i], &outer_actions[i], NULL);
}

/* What ended a program: the signal, the place, whether its stack is full, library and function. */
PyObject *
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
