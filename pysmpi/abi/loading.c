/* Loading libraries: the functions that they call are replaced where they are ours. */

#include "process.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

tables
tables_of(const struct link_map *map)
{
    tables result = {0};
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++)
        switch (each->d_tag) {
        case DT_JMPREL: result.entries[0] = (const void *)each->d_un.d_ptr; break;
        case DT_PLTRELSZ: result.counts[0] = each->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: result.entries[1] = (const void *)each->d_un.d_ptr; break;
        case DT_RELASZ: result.counts[1] = each->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_SYMTAB: result.symbols = (const void *)each->d_un.d_ptr; break;
        case DT_STRTAB: result.names = (const void *)each->d_un.d_ptr; break;
        }
    return result;
}

int
store(void *target, const void *data, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t start = (uintptr_t)target & ~(page - 1);
    if (mprotect((void *)start, (uintptr_t)target + size - start, PROT_READ | PROT_WRITE) != 0)
        return -1;
    memcpy(target, data, size);
    return 0;
}

/* The loader knows a loaded file by its device and number, which follow each other somewhere in its
   own part of the map: a number that no file has takes the place of the latter. */
int
forget_file(struct link_map *map, int file)
{
    static uint64_t last = UINT64_MAX;
    struct stat about;
    uint64_t *number = NULL;
    if (fstat(file, &about) != 0)
        return 0;
    uint64_t *const words = (uint64_t *)(void *)map;
    const size_t count = malloc_usable_size(map) / sizeof *words;
    for (size_t i = sizeof *map / sizeof *words; i + 1 < count; i++)
        if (words[i] == about.st_dev && words[i + 1] == about.st_ino) {
            if (number != NULL)
                return 0;
            number = &words[i + 1];
        }
    if (number != NULL)
        *number = last--;
    return number != NULL;
}

static int
is_environment(const char *name)
{
    return strcmp(name, "environ") == 0 || strcmp(name, "__environ") == 0
        || strcmp(name, "_environ") == 0;
}

/* Ours of a name; functions of MPI too, as another MPI library may have come first. A tool that
   the program was linked with, and that calls PMPI_ functions, comes before ours. */
static void *
ours_of(const char *name, int kind, void *library, Process *process)
{
    if (strncmp(name, "MPI_", 4) == 0 && process != NULL) {
        void *tool = dlsym(process->images[0].handle, name);
        if (tool != NULL && image_at(process, (uintptr_t)tool) != NULL)
            return tool;
    }
    if (strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0)
        return library != NULL ? dlsym(library, name) : NULL;
    if (process != NULL && is_environment(name))
        return process->environment;
    void *ours = replacement_of(name, kind);
    if (ours == NULL && process != NULL)
        ours = thread_replacement(name, process);
    if (ours == NULL && process != NULL)
        ours = option_variable(&process->options, name, NULL);
    if (ours != NULL || process == NULL || process->words == NULL)
        return ours;
    /* A library that the program opens uses what the program defines. */
    char *object = dlsym(process->images[0].handle, name);
    return (uintptr_t)object - process->base < process->size ? object : NULL;
}

int
redirect(const struct link_map *map, int kind, Process *process)
{
    const tables file = tables_of(map);
    const char *interface = "psm_mpich.so";
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++)
        if (each->d_tag == DT_NEEDED
            && (strcmp(file.names + each->d_un.d_val, "psm_ompi.so") == 0
                || strcmp(file.names + each->d_un.d_val, "psm_std.so") == 0))
            interface = file.names + each->d_un.d_val;
    void *library = dlopen(interface, RTLD_NOLOAD | RTLD_LAZY);
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; file.entries[i] != NULL && j < file.counts[i]; j++) {
            const ElfW(Rela) *entry = &file.entries[i][j];
            const unsigned type = ELF64_R_TYPE(entry->r_info);
            if (type != JUMP_SLOT && type != GLOB_DAT && type != ADDRESS)
                continue;
            const ElfW(Sym) *symbol = &file.symbols[ELF64_R_SYM(entry->r_info)];
            if (symbol->st_shndx != SHN_UNDEF) /* its own functions and stubs */
                continue;
            char *ours = ours_of(file.names + symbol->st_name, kind, library, process);
            if (ours == NULL)
                continue;
            ours += type == ADDRESS ? entry->r_addend : 0;
            char **slot = (char **)(map->l_addr + entry->r_offset);
            if (*slot != ours && store(slot, &ours, sizeof ours) < 0)
                return -1;
        }
    return 0;
}

/* open(path, ours): load a library; its lowest address. If it is ours, so are its calls of MPI. */
PyObject *
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
    if (mine && redirect(map, LIBRARY, NULL) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromUnsignedLongLong((unsigned long long)map->l_addr);
}

/* share(copy, original, address, offset, size, executable): map a part of a loaded copy from the
   original file, and free the memory that it took. */
PyObject *
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
PyObject *
export_functions(PyObject *module, PyObject *Py_UNUSED(args))
{
    if (dlopen("psm_mpich.so", RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL) == NULL) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    Py_RETURN_NONE;
}

/* handle(path, keep): the handle of dlopen of a library; 0 if it cannot be loaded. */
PyObject *
handle_of(PyObject *module, PyObject *args)
{
    const char *path;
    int keep = 1;
    if (!PyArg_ParseTuple(args, "s|p", &path, &keep))
        return NULL;
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (handle != NULL && !keep)
        dlclose(handle); /* it has another one */
    return PyLong_FromVoidPtr(handle);
}
