/* The streams of the C library, of each rank. */

#include "process.h"
#include <errno.h>
#include <unistd.h>

FILE **const usual[3] = {&stdin, &stdout, &stderr};
FILE *ours[3]; /* of the process itself */

void
install(Process *process)
{
    running = process;
    for (int i = 0; i < 3; i++)
        *usual[i] = process != NULL && process->streams[i] ? process->streams[i] : ours[i];
    if (process != NULL)
        errno = process->error;
}

void
uninstall(Process *process)
{
    process->error = errno;
    for (int i = 0; i < 3; i++)
        *usual[i] = ours[i];
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

FILE *
stream(int descriptor, int buffering)
{
    cookie_io_functions_t functions = {read_stream, write_stream, NULL, NULL};
    FILE *made = fopencookie((void *)(intptr_t)descriptor, descriptor == 0 ? "r" : "w", functions);
    if (made != NULL)
        setvbuf(made, NULL, buffering, BUFSIZ);
    return made;
}
