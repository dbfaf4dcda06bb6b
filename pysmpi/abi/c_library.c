/* What programs and libraries call in place of functions of the C library. */

#include "process.h"
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

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

/* Let the main thread end the rank of a thread that has called exit. */
static void
finish_elsewhere(int status, int quick, void *site)
{
    Process *owner = owner_of((uintptr_t)site);
    if (owner == NULL)
        _exit(status);
    owner->status = status;
    owner->leaving = 1 + quick;
    park();
}

void
finish(int status, int quick)
{
    Process *process = caller();
    if (process == NULL) { /* a library ends its rank as `sys.exit` and `os._exit` do */
        PYTHON(PSM_EXIT, status, quick);
    }
    if (!quick) {
        call_endings(process);
        destroy(process);
    }
    for (int i = 1; i < 3 && !quick; i++)
        if (process->streams[i] != NULL)
            fflush(process->streams[i]);
    process->status = status;
    process->ended = 1;
    leave(process);
}

static void
own_exit(int status)
{
    if (elsewhere())
        finish_elsewhere(status & 0xff, 0, __builtin_return_address(0));
    finish(status & 0xff, 0);
}

static void
own_quick_exit(int status)
{
    if (elsewhere())
        finish_elsewhere(status & 0xff, 1, __builtin_return_address(0));
    finish(status & 0xff, 1);
}

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
    Process *process = caller();
    (void)library;
    if (process != NULL && process->shared && value != NULL)
        return 0; /* another rank may still use the object */
    ending *made = malloc(sizeof *made);
    if (made == NULL || process == NULL) {
        free(made);
        return -1;
    }
    *made = (ending){process->endings, function, value};
    process->endings = made;
    return 0;
}

static void call_plain(void *function) { ((void (*)(void))function)(); }

static int
own_atexit(void (*function)(void))
{
    return own_cxa_atexit(call_plain, (void *)function, NULL);
}

static int
own_start_main(int (*program)(int, char **, char **), int count, char **words,
               void (*constructors)(int, char **, char **))
{
    if (constructors != NULL) { /* of older executables */
        running->images[0].constructed = 1;
        construct(running);
        if (running->shared != 2)
            constructors(count, words, words + count + 1);
    } else
        construct(running);
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

char *
own_getenv(const char *name)
{
    size_t length = strlen(name);
    char **entry = running != NULL ? *running->environment : environ;
    for (; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* Variables of the process: entries that the program adds stay, as others may point to them. */

static char **
variable(const char *name, size_t length)
{
    char **entry = *running->environment;
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
        size_t count = (size_t)(entry - *running->environment);
        char **longer = malloc((count + 2) * sizeof *longer);
        if (longer == NULL)
            return -1;
        memcpy(longer, *running->environment, count * sizeof *longer);
        longer[count + 1] = NULL;
        *running->environment = longer;
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
    **running->environment = NULL;
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

/* std::ios::sync_with_stdio: the streams of C++ stay those of C, as these belong to a rank. */
static int
own_sync_with_stdio(int wanted)
{
    (void)wanted;
    return 1;
}

/* Libraries that write to descriptors themselves, as that of Fortran does. */

static ssize_t
own_write(int descriptor, const void *data, size_t size)
{
    if (elsewhere() || (descriptor != 1 && descriptor != 2))
        return write(descriptor, data, size);
    return (ssize_t)PYTHON(PSM_WRITE, descriptor, (intptr_t)data, (long long)size);
}

static ssize_t
own_read(int descriptor, void *data, size_t size)
{
    if (elsewhere() || descriptor != 0)
        return read(descriptor, data, size);
    return (ssize_t)PYTHON(PSM_READ, descriptor, (intptr_t)data, (long long)size);
}

/* Libraries that the program opens: those of the rank, if they have to be. */

static void *
program_dlopen(const char *name, int flags)
{
    Process *process = caller();
    if (process == NULL)
        return dlopen(name, flags);
    if (name == NULL)
        return process->images[0].handle;
    void *handle = (void *)(intptr_t)PYTHON(PSM_LOAD, (intptr_t)name, flags);
    if (handle == NULL)
        return dlopen(name, flags);
    construct(process);
    return handle;
}

static void *
own_dlsym(void *handle, const char *name)
{
    Process *process = caller();
    void *function = process != NULL ? replacement_of(name, PROGRAM) : NULL;
    if (function == NULL && process != NULL && handle == RTLD_DEFAULT)
        for (int i = 0; i < process->images_count && function == NULL; i++)
            function = dlsym(process->images[i].handle, name);
    return function != NULL ? function : dlsym(handle, name);
}

static int
own_dlclose(void *handle)
{
    Process *process = caller();
    for (int i = 0; process != NULL && i < process->images_count; i++)
        if (process->images[i].handle == handle)
            return 0; /* it stays until the rank ends */
    return dlclose(handle);
}

/* The interpreter of the process is pysmpi's: nothing ends it, and a program has none of its own. */

static void own_finalize(void) {}
static int own_finalize_ex(void) { return 0; }
static int own_is_initialized(void) { return 0; }

static void
own_initialize(void)
{
    static const char text[] = "pysmpi: a library began an interpreter of Python (Py_Initialize): a "
                               "program that embeds Python cannot be simulated\n";
    (void)!write(2, text, sizeof text - 1);
    own_abort();
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
    {"Py_Finalize", (void *)own_finalize},
    {"Py_FinalizeEx", (void *)own_finalize_ex},
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
    {"getopt", (void *)own_getopt},
    {"__posix_getopt", (void *)own_posix_getopt},
    {"getopt_long", (void *)own_getopt_long},
    {"getopt_long_only", (void *)own_getopt_long_only},
    {"_ZNSt8ios_base15sync_with_stdioEb", (void *)own_sync_with_stdio},
    {"write", (void *)own_write},
    {"read", (void *)own_read},
    {"dlopen", (void *)program_dlopen},
    {"dlsym", (void *)own_dlsym},
    {"dlclose", (void *)own_dlclose},
    {"Py_IsInitialized", (void *)own_is_initialized},
    {"Py_Initialize", (void *)own_initialize},
    {"Py_InitializeEx", (void *)own_initialize},
    {"Py_InitializeFromConfig", (void *)own_initialize},
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

/* A library that opens an MPI library, or one that needs it, gets what an import would. */
static void *
library_dlopen(const char *name, int flags)
{
    const char *file = NULL;
    if (name != NULL && !elsewhere())
        file = (const char *)(intptr_t)PYTHON(PSM_OPEN, (intptr_t)name, (flags & RTLD_GLOBAL) != 0);
    return file != NULL ? dlopen(file, flags & ~RTLD_GLOBAL) : dlopen(name, flags);
}

void *
replacement_of(const char *name, int kind)
{
    if (kind == LIBRARY && strcmp(name, "dlopen") == 0)
        return (void *)library_dlopen;
    void *function = replacing(REPLACED, name);
    return function != NULL || kind != PROGRAM ? function : replacing(OF_PROGRAMS, name);
}
