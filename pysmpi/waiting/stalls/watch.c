/* A thread that notices when the main thread no longer returns from C.

   All ranks run in the main thread. If one of them waits in C, nothing of Python runs in this thread
   any more, no handler of a signal either, and the interpreter's lock may be held. So the thread
   that looks is one of C and needs no lock. Once a second it compares processor times, and asks
   the interpreter to call a function in the main thread, which only happens between instructions of
   Python. It calls nothing of Python until there is something to judge; then a second thread does,
   with the lock. If the main thread sleeps with the lock, a handler of a signal in the main thread
   lends it. */

#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WATCHER_STACK ((size_t)64 << 10)
#define JUDGE_STACK ((size_t)4 << 20)
#define IDLE 0.05 /* the share of a processor that a process uses at most while it waits */
#define ENTER 5.0 /* seconds to get the interpreter's lock */
#define LEND 10.0 /* seconds for the main thread to lend it, which others may keep from running */
#define RETURN 0.1 /* seconds in which a thread that gets the lock answers */
#define DEAF_QUIET 2.0 /* seconds from a signal to the end, if the main thread waits */
#define DEAF_BUSY 6.0 /* the same, if it computes */
#define STEP 5000000L /* nanoseconds */

static pthread_t watcher, watched;
static pid_t owner; /* the process of the watcher; 0 if there is none */
static clockid_t watched_clock;
static pthread_mutex_t lock;
static pthread_cond_t wake;
static int ending;
static int handles; /* whether signals are noted */
static double interval, patience;
static long watched_id;
static PyObject *judge;

static atomic_int asked; /* whether the main thread has not yet answered */
static atomic_int arrived; /* the number of a signal that no handler of Python has seen */

/* A judgement. */
static atomic_int entered, given_up, judged;
static double quiet_for, again_at;
static int judged_signal;
static char lent_call[256]; /* the call of the operating system from which the lock was lent */

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
static void (*pythons)(int); /* Python's handler of all signals */

static double seconds(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return 0.0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void rest(void)
{
    struct timespec step = {0, STEP};
    nanosleep(&step, NULL);
}

/* Signals */

static void note(int number)
{
    atomic_store(&arrived, number);
    if (pythons != NULL)
        pythons(number);
}

static void take_handlers(void)
{
    /* A rank that sets a handler puts Python's function back. */
    for (size_t i = 0; handles && i < sizeof SIGNALS / sizeof *SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(SIGNALS[i], NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO))
            continue;
        if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || now.sa_handler == note)
            continue;
        if (pythons == NULL)
            pythons = now.sa_handler;
        if (now.sa_handler != pythons)
            continue;
        now.sa_handler = note;
        sigaction(SIGNALS[i], &now, NULL);
    }
}

static void give_handlers_back(void)
{
    for (size_t i = 0; handles && i < sizeof SIGNALS / sizeof *SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(SIGNALS[i], NULL, &now) == 0 && now.sa_handler == note) {
            now.sa_handler = pythons;
            sigaction(SIGNALS[i], &now, NULL);
        }
    }
}

/* Judging */

static void *be_judge(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "pysmpi judge");
    PyGILState_STATE state = PyGILState_Ensure();
    if (!atomic_load(&given_up)) {
        atomic_store(&entered, 1);
        PyObject *answer = PyObject_CallFunction(judge, "dis", quiet_for, judged_signal, lent_call);
        again_at = answer == NULL ? -1.0 : PyFloat_AsDouble(answer);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            again_at = 1e9;
        }
        Py_XDECREF(answer);
    }
    PyGILState_Release(state);
    atomic_store(&judged, 1);
    return NULL;
}

static void note_call(void)
{
    /* While the lock is lent, the thread is in another call. */
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", watched_id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, lent_call, sizeof lent_call - 1);
    lent_call[length > 0 ? length : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static void lend(int number)
{
    (void)number;
    int error = errno;
    if (PyGILState_Check() && !atomic_load(&entered)) {
        PyThreadState *state = PyEval_SaveThread();
        while (!atomic_load(&judged) && !atomic_load(&given_up))
            rest();
        PyEval_RestoreThread(state);
    }
    errno = error;
}

static int waits_for(atomic_int *flag, double most)
{
    double until = seconds(CLOCK_MONOTONIC) + most;
    while (!atomic_load(flag) && seconds(CLOCK_MONOTONIC) < until)
        rest();
    return atomic_load(flag);
}

static void waits_for_no(atomic_int *flag, double most)
{
    double until = seconds(CLOCK_MONOTONIC) + most;
    while (atomic_load(flag) && seconds(CLOCK_MONOTONIC) < until)
        rest();
}

static void leave(int number)
{
    char text[80];
    int length = snprintf(text, sizeof text, "pysmpi: error: %s\n",
                          number == SIGINT    ? "interrupted"
                          : number == SIGTERM ? "ended by SIGTERM"
                                              : "ended by SIGHUP");
    if (write(2, text, (size_t)length) < 0) {
    }
    _exit(128 + number);
}

static int start_thread(pthread_t *thread, void *(*body)(void *), size_t stack)
{
    /* All signals are for the main thread. */
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, &attributes, body, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Call the judge. Return the seconds of quiet after which it wants to be called again. */
static double ask(double quiet, int number)
{
    pthread_t thread;
    atomic_store(&entered, 0);
    atomic_store(&judged, 0);
    atomic_store(&given_up, 0);
    quiet_for = quiet;
    judged_signal = number;
    lent_call[0] = 0;
    double before = seconds(watched_clock);
    if (start_thread(&thread, be_judge, JUDGE_STACK) != 0) {
        if (number)
            leave(number);
        return 2.0 * quiet;
    }
    if (!waits_for(&entered, ENTER) && seconds(watched_clock) == before) {
        struct sigaction ours, theirs;
        memset(&ours, 0, sizeof ours);
        ours.sa_handler = lend;
        ours.sa_flags = SA_RESTART;
        sigfillset(&ours.sa_mask);
        int borrow = SIGRTMAX - 4;
        note_call();
        sigaction(borrow, &ours, &theirs);
        pthread_kill(watched, borrow);
        if (!waits_for(&entered, LEND))
            atomic_store(&given_up, 1);
        else
            waits_for(&judged, 3600.0);
        sigaction(borrow, &theirs, NULL);
    }
    if (!atomic_load(&entered)) {
        atomic_store(&given_up, 1);
        if (number)
            leave(number);
        again_at = 2.0 * quiet;
    }
    pthread_join(thread, NULL);
    return again_at;
}

/* Watching */

static int answer(void *unused)
{
    (void)unused;
    atomic_store(&asked, 0);
    return 0;
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "pysmpi watch");
    double own = 0.0, all = 0.0, then = seconds(CLOCK_MONOTONIC);
    double quiet = 0.0, deaf = 0.0, next = patience;
    int seen = 0; /* whether a signal had arrived at an earlier look */
    pthread_mutex_lock(&lock);
    while (!ending) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)interval;
        until.tv_nsec += (long)((interval - (double)(time_t)interval) * 1e9);
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        pthread_cond_timedwait(&wake, &lock, &until);
        if (ending)
            break;
        pthread_mutex_unlock(&lock);
        take_handlers();
        double now = seconds(CLOCK_MONOTONIC), passed = now - then;
        double own_now = seconds(watched_clock), all_now = seconds(CLOCK_PROCESS_CPUTIME_ID);
        int busy = own_now - own > IDLE * passed || all_now - all > IDLE * passed;
        int answered = !atomic_load(&asked);
        then = now;
        own = own_now;
        all = all_now;
        if (answered || busy) {
            quiet = 0.0;
            next = patience;
        } else
            quiet += passed < 2.0 * interval ? passed : interval;
        int number = atomic_load(&arrived);
        if (number && seen && answered) {
            atomic_store(&arrived, 0); /* Python has called the handler */
            number = seen = 0;
        }
        if (!number)
            deaf = 0.0;
        else if (!seen)
            seen = 1;
        else
            deaf += passed;
        if (answered) {
            atomic_store(&asked, 1);
            if (Py_AddPendingCall(answer, NULL) != 0)
                atomic_store(&asked, 0);
        }
        if (deaf >= (busy ? DEAF_BUSY : DEAF_QUIET))
            ask(quiet, number);
        else if (!number && quiet >= next) {
            next = ask(quiet, 0);
            /* What the judge has used is not what the process uses. */
            own = seconds(watched_clock);
            all = seconds(CLOCK_PROCESS_CPUTIME_ID);
            then = seconds(CLOCK_MONOTONIC);
        }
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static PyObject *start(PyObject *module, PyObject *arguments)
{
    PyObject *function;
    (void)module;
    double every, first;
    int with_signals;
    if (!PyArg_ParseTuple(arguments, "Oddp:start", &function, &every, &first, &with_signals))
        return NULL;
    if (owner == getpid()) {
        PyErr_SetString(PyExc_RuntimeError, "a thread is watched already");
        return NULL;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&lock, NULL);
    watched = pthread_self();
    watched_id = syscall(SYS_gettid);
    interval = every;
    patience = first;
    handles = with_signals;
    ending = 0;
    atomic_store(&arrived, 0);
    atomic_store(&asked, 0);
    if (pthread_getcpuclockid(watched, &watched_clock) != 0)
        Py_RETURN_FALSE;
    Py_XSETREF(judge, Py_NewRef(function));
    take_handlers();
    if (start_thread(&watcher, watch, WATCHER_STACK) != 0) {
        give_handlers_back();
        Py_RETURN_FALSE;
    }
    owner = getpid();
    Py_RETURN_TRUE;
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (owner == getpid()) {
        Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&lock);
        ending = 1;
        pthread_cond_signal(&wake);
        pthread_mutex_unlock(&lock);
        pthread_join(watcher, NULL);
        Py_END_ALLOW_THREADS
        give_handlers_back();
    }
    owner = 0;
    Py_CLEAR(judge);
    Py_RETURN_NONE;
}

static PyObject *returned(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    /* A thread that has returned needs the lock to answer. */
    Py_BEGIN_ALLOW_THREADS
    waits_for_no(&asked, RETURN);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(!atomic_load(&asked));
}

static PyObject *thread(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(watched_id);
}

static PyMethodDef methods[] = {
    {"start", start, METH_VARARGS,
     "start(judge, interval, patience, signals): watch the calling thread.\n\n"
     "True if this is possible."},
    {"stop", stop, METH_NOARGS, "stop(): watch it no longer."},
    {"returned", returned, METH_NOARGS,
     "returned(): whether the watched thread has returned to Python since the last look."},
    {"thread", thread, METH_NOARGS, "thread(): the system's number of the watched thread."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "watch", "Notices when a thread no longer returns from C.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_watch(void)
{
    return PyModule_Create(&definition);
}

#else

PyMODINIT_FUNC PyInit_watch(void)
{
    PyErr_SetString(PyExc_ImportError, "threads are watched on Linux only");
    return NULL;
}

#endif
