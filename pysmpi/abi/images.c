/* The loaded copies of a rank: its program, the libraries of that, and those that it opens.

The loader runs no constructors and no destructors of them, as `elf.py` has changed the tags. The rank
runs them on its own stack. */

#include "process.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN(tag) (0x60500000 | (tag)) /* as in elf.py */

const image *
image_at(const Process *process, uintptr_t address)
{
    for (int i = 0; i < process->images_count; i++)
        if (address - process->images[i].base < process->images[i].size)
            return &process->images[i];
    return NULL;
}

static image *
add(Process *process, void *handle, Py_ssize_t number, Py_ssize_t size)
{
    struct link_map *map;
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    const size_t count = (size_t)process->images_count + 1;
    image *longer = realloc(process->images, count * sizeof *longer);
    if (longer == NULL)
        return (image *)PyErr_NoMemory();
    process->images = longer;
    image *made = &longer[process->images_count++];
    *made = (image){handle, map, (uintptr_t)map->l_addr, (size_t)size, number, process->shared == 2};
    return made;
}

image *
load_images(Process *process, const char *path, Py_ssize_t number, Py_ssize_t size,
            PyObject *libraries)
{
    const int first = process->images_count;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) /* functions that are missing may never be called */
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (add(process, handle, number, size) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(libraries); i++) {
        const char *name;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(libraries, i), "snn", &name, &number, &size)
            || add(process, dlopen(name, RTLD_LAZY | RTLD_NOLOAD), number, size) == NULL)
            return NULL;
    }
    /* The addresses of variables depend on the copies that the program has. */
    if (first == 0 && bind_variables(process) < 0)
        return (image *)PyErr_SetFromErrno(PyExc_OSError);
    for (int i = first; i < process->images_count; i++)
        if (redirect(process->images[i].map, PROGRAM, process) < 0)
            return (image *)PyErr_SetFromErrno(PyExc_OSError);
    return &process->images[first];
}

static uintptr_t
value_of(const image *self, long tag)
{
    for (const ElfW(Dyn) *each = self->map->l_ld; each->d_tag != DT_NULL; each++)
        if (each->d_tag == HIDDEN(tag))
            return each->d_un.d_val;
    return 0;
}

typedef void initializer(int, char **, char **);

static void
construct_one(const Process *process, image *self)
{
    if (self->constructed)
        return;
    self->constructed = 1;
    const uintptr_t one = value_of(self, DT_INIT), array = value_of(self, DT_INIT_ARRAY);
    const uintptr_t count = value_of(self, DT_INIT_ARRAYSZ) / sizeof(void *), base = self->base;
    char **variables = *process->environment;
    if (one != 0)
        ((initializer *)(base + one))(process->words_count, process->words, variables);
    for (uintptr_t i = 0; i < count; i++)
        ((initializer **)(base + array))[i](process->words_count, process->words, variables);
}

/* Run the constructors that have not run: those of libraries first. */
void
construct(Process *process)
{
    for (int i = 1; i < process->images_count; i++)
        construct_one(process, &process->images[i]);
    construct_one(process, &process->images[0]);
}

static void
destroy_one(image *self)
{
    if (self->constructed != 1)
        return;
    self->constructed = 2;
    const uintptr_t one = value_of(self, DT_FINI), array = value_of(self, DT_FINI_ARRAY);
    uintptr_t count = value_of(self, DT_FINI_ARRAYSZ) / sizeof(void *);
    while (count > 0)
        ((void (**)(void))(self->base + array))[--count]();
    if (one != 0)
        ((void (*)(void))(self->base + one))();
}

/* Run the destructors of what was constructed. */
void
destroy(Process *process)
{
    if (process->shared || process->images_count == 0)
        return;
    destroy_one(&process->images[0]);
    for (int i = process->images_count - 1; i > 0; i--)
        destroy_one(&process->images[i]);
}

void
close_images(Process *process)
{
    while (process->images_count > 0)
        dlclose(process->images[--process->images_count].handle);
    free(process->images);
    process->images = NULL;
}
