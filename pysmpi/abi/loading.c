/* Loading libraries: the functions that they call are replaced where they are ours. */

#include "process.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#define ADDRESS R_X86_64_64
#else
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#define ADDRESS R_AARCH64_ABS64
#endif

/* Ours of a name; functions of MPI too, as another MPI library may have come first. */
static void *
ours_of(const char *name, int kind, void *library)
{
    if (kind != FORTRAN_LIBRARY
        && (strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0))
        return library != NULL ? dlsym(library, name) : NULL;
    return replacement_of(name, kind);
}

static int
replace(ElfW(Addr) base, const ElfW(Rela) *entries, size_t bytes, const ElfW(Sym) *symbols,
        const char *names, int kind, void *library, Process *process)
{
    long page = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < bytes / sizeof *entries; i++) {
        unsigned type = ELF64_R_TYPE(entries[i].r_info);
        if (type != JUMP_SLOT && type != GLOB_DAT && type != ADDRESS)
            continue;
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(entries[i].r_info)];
        if (symbol->st_shndx != SHN_UNDEF) /* its own functions and stubs */
            continue;
        void *function = ours_of(names + symbol->st_name, kind, library);
        if (function == NULL && process != NULL)
            function = option_variable(&process->options, names + symbol->st_name, NULL);
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

int
redirect(const struct link_map *map, int kind, Process *process)
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
        if (entries[i] != NULL && replace(map->l_addr, entries[i], bytes[i], symbols, names, kind, library,
                                         process)
                                     < 0)
            return -1;
    return 0;
}

/* Remove the destructors of a library: they are for programs that have ended on their own. */

static void nothing(void) {}

int
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

/* adopt(path): let the loaded library of Fortran serve the ranks of programs. */
PyObject *
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
    if (redirect(map, FORTRAN_LIBRARY, NULL) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}
