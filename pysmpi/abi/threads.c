/* Threads of programs: only the main one runs Python; others compute, and may outlive their rank. */

#include "process.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__thread int refused_here;

void
park(void)
{
    for (;;)
        pause();
}

typedef struct {
    void *(*function)(void *);
    void *argument;
    thread_count *count;
} beginning;

static void
end_thread(void *pointer)
{
    __atomic_sub_fetch((thread_count *)pointer, 1, __ATOMIC_RELEASE);
}

static void *
run_thread(void *pointer)
{
    const beginning self = *(beginning *)pointer;
    void *result;
    free(pointer);
    pthread_cleanup_push(end_thread, self.count); /* also for pthread_exit */
    result = self.function(self.argument);
    pthread_cleanup_pop(1);
    return result;
}

static int
own_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument)
{
    Process *owner = caller();
    if (owner == NULL || elsewhere())
        owner = owner_of((uintptr_t)__builtin_return_address(0));
    beginning *made = owner == NULL ? NULL : malloc(sizeof *made);
    if (made == NULL)
        return pthread_create(thread, attributes, function, argument);
    if (owner->threads_alive == NULL)
        owner->threads_alive = calloc(1, sizeof *owner->threads_alive);
    *made = (beginning){function, argument, owner->threads_alive};
    if (made->count == NULL) {
        free(made);
        return EAGAIN;
    }
    __atomic_add_fetch(made->count, 1, __ATOMIC_ACQUIRE);
    int error = pthread_create(thread, attributes, run_thread, made);
    if (error != 0) {
        end_thread(made->count);
        free(made);
    }
    return error;
}

/* Functions of other libraries that start threads of the program, which nobody counts. */
static const char *const STARTERS[] = {
    "GOMP_parallel", "__kmpc_fork_call", "thrd_create",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
};

void *
thread_replacement(const char *name, Process *process)
{
    if (strcmp(name, "pthread_create") == 0)
        return (void *)own_pthread_create;
    for (size_t i = 0; i < sizeof STARTERS / sizeof *STARTERS; i++)
        if (strcmp(name, STARTERS[i]) == 0)
            process->starts_threads = 1;
    return NULL;
}

int
may_have_threads(Process *process)
{
    thread_count *count = process->threads_alive;
    if (process->refused || process->starts_threads)
        return 1;
    if (count != NULL && __atomic_load_n(count, __ATOMIC_ACQUIRE) > 0)
        return 1; /* the count stays, too */
    free(count);
    process->threads_alive = NULL;
    return 0;
}
