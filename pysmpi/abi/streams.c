/* The streams of the C library, of each rank. */

#include "process.h"
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

FILE **const usual[3] = {&stdin, &stdout, &stderr};
FILE *ours[3]; /* of the process itself */
/* Of the streams of C++: the files of their buffers. */
#define LOG 3
#define WORDS_OF_A_BUFFER 10
static FILE **cxx_files[4];

/* Let the C library, and libraries of all ranks, use what belongs to a process. */
void
install(Process *process)
{
    running = process;
    for (int i = 0; i < 3; i++) {
        FILE *mine = process->streams[i] != NULL ? process->streams[i] : ours[i];
        *usual[i] = mine;
        if (cxx_files[i] != NULL)
            *cxx_files[i] = mine;
        if (process->shared && process->copied_streams[i] != NULL)
            *process->copied_streams[i] = mine;
    }
    if (cxx_files[LOG] != NULL)
        *cxx_files[LOG] = *usual[2];
    for (int i = 0; i < process->bindings_count; i++)
        *process->bindings[i].slot = process->bindings[i].own;
    errno = process->error;
}

void
uninstall(Process *process)
{
    process->error = errno;
    for (int i = 0; i < process->bindings_count; i++)
        *process->bindings[i].slot = process->bindings[i].outer;
    for (int i = 0; i < 3; i++) {
        *usual[i] = ours[i];
        if (cxx_files[i] != NULL)
            *cxx_files[i] = ours[i];
    }
    if (cxx_files[LOG] != NULL)
        *cxx_files[LOG] = ours[2];
}

/* The streams of C++ write to those of C through buffers that all ranks share: the address of the
   stream in each of them is found by its value. */
void
adopt_cxx_streams(void)
{
    static const char *const names[4] = {"_ZSt3cin", "_ZSt4cout", "_ZSt4cerr", "_ZSt4clog"};
    void *(*buffer_of)(void *) = (void *(*)(void *))dlsym(
        RTLD_DEFAULT, "_ZNKSt9basic_iosIcSt11char_traitsIcEE5rdbufEv");
    for (int i = 0; i < 4 && buffer_of != NULL; i++) {
        char *stream = dlsym(RTLD_DEFAULT, names[i]);
        if (stream == NULL)
            continue;
        void **buffer = buffer_of(stream + (*(ptrdiff_t **)stream)[-3]); /* of its base basic_ios */
        for (int j = 0; buffer != NULL && j < WORDS_OF_A_BUFFER && cxx_files[i] == NULL; j++)
            if (buffer[j] == ours[i < 3 ? i : 2])
                cxx_files[i] = (FILE **)&buffer[j];
    }
}

static ssize_t
write_stream(void *cookie, const char *data, size_t size)
{
    if (running == NULL || elsewhere())
        return write((int)(intptr_t)cookie, data, size);
    return (ssize_t)PYTHON(PSM_WRITE, (intptr_t)cookie, (intptr_t)data, (long long)size);
}

static ssize_t
read_stream(void *cookie, char *data, size_t size)
{
    if (elsewhere())
        return read((int)(intptr_t)cookie, data, size);
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
