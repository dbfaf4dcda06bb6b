/* Variables of libraries of which an executable has copies.

The loader looks for what it copies in the libraries of the process and in the executable itself, not
in the libraries that the executable needs. And libraries that all ranks share do not know the copies
of a rank: while it runs, they get their addresses. */

#include "process.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LIBRARIES 64

/* The addresses of a variable that the library which defines it uses, the same for all ranks. */
typedef struct references {
    struct references *next;
    void *definition;
    int count;
    void **slots[4];
} references;

static references *all_references;

static int
find_slots(const struct link_map *map, void *definition, void ***slots, int most)
{
    const tables file = tables_of(map);
    int count = 0;
    for (size_t i = 0; file.entries[1] != NULL && i < file.counts[1]; i++) {
        void **slot = (void **)(map->l_addr + file.entries[1][i].r_offset);
        if (ELF64_R_TYPE(file.entries[1][i].r_info) == GLOB_DAT && *slot == definition && count < most)
            slots[count++] = slot;
    }
    return count;
}

static const references *
references_of(void *definition)
{
    const references *each = all_references;
    while (each != NULL && each->definition != definition)
        each = each->next;
    if (each != NULL)
        return each;
    Dl_info place;
    struct link_map *map;
    references *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->definition = definition;
    if (dladdr1(definition, &place, (void **)&map, RTLD_DL_LINKMAP))
        made->count = find_slots(map, definition, made->slots, 4);
    for (int i = 0; i < made->count; i++) /* it will be exchanged */
        if (store(made->slots[i], &definition, sizeof definition) < 0)
            made->count = 0;
    made->next = all_references;
    return all_references = made;
}

/* Let the libraries use the program's copy of a variable. */
static int
bind_variable(Process *process, void *definition, void *own)
{
    const references *shared = references_of(definition);
    const size_t count = (size_t)process->bindings_count + (shared != NULL ? (size_t)shared->count : 0);
    binding *longer = realloc(process->bindings, (count + 1) * sizeof *longer);
    if (shared == NULL || longer == NULL)
        return -1;
    process->bindings = longer;
    for (int i = 0; i < shared->count; i++)
        longer[process->bindings_count++] = (binding){shared->slots[i], own, definition};
    for (int i = 1; i < process->images_count; i++) {
        void **slots[16];
        int own_count = find_slots(process->images[i].map, definition, slots, 16);
        while (own_count > 0)
            if (store(slots[--own_count], &own, sizeof own) < 0)
                return -1;
    }
    return 0;
}

/* The definition in a library of the rank, or in one that the executable needs. */
static void *
definition_of(const Process *process, void *const *libraries, size_t count, const char *name)
{
    for (int i = 1; i < process->images_count; i++) {
        char *object = dlsym(process->images[i].handle, name);
        if (object != NULL && image_at(process, (uintptr_t)object) == &process->images[i])
            return object;
    }
    for (size_t i = 0; i < count; i++) {
        void *object = dlsym(libraries[i], name);
        if (object != NULL)
            return object;
    }
    return NULL;
}

static size_t
size_of(void *object, size_t most)
{
    const ElfW(Sym) *original = NULL;
    Dl_info place;
    if (!dladdr1(object, &place, (void **)&original, RTLD_DL_SYMENT) || original == NULL)
        return 0;
    return original->st_size < most ? original->st_size : most;
}

int
bind_variables(Process *process)
{
    static const char *const streams[3] = {"stdin", "stdout", "stderr"};
    const struct link_map *map = process->images[0].map;
    const tables file = tables_of(map);
    void *libraries[MOST_LIBRARIES];
    size_t count = 0;
    int failed = 0;
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++)
        if (each->d_tag == DT_NEEDED && count < MOST_LIBRARIES) {
            libraries[count] = dlopen(file.names + each->d_un.d_val, RTLD_LAZY | RTLD_NOLOAD);
            count += libraries[count] != NULL;
        }
    for (size_t i = 0; file.entries[1] != NULL && i < file.counts[1]; i++) {
        if (ELF64_R_TYPE(file.entries[1][i].r_info) != COPY)
            continue;
        const ElfW(Sym) *symbol = &file.symbols[ELF64_R_SYM(file.entries[1][i].r_info)];
        const char *name = file.names + symbol->st_name;
        void *own = (void *)(map->l_addr + file.entries[1][i].r_offset);
        int stream = 0;
        while (stream < 3 && strcmp(name, streams[stream]) != 0)
            stream++;
        if (stream < 3) { /* their values are exchanged */
            process->copied_streams[stream] = own;
            continue;
        }
        if (option_variable(&process->options, name, own) != NULL)
            continue;
        void *definition = definition_of(process, libraries, count, name);
        if (definition == NULL)
            definition = dlsym(RTLD_DEFAULT, name);
        if (definition == NULL || definition == own)
            continue;
        if (strcmp(name, "environ") == 0 || strcmp(name, "__environ") == 0)
            process->environment = own;
        const int is_ours = image_at(process, (uintptr_t)definition) != NULL;
        /* The loader has copied from the global scope alone, which need not have this library. */
        const size_t size = size_of(definition, symbol->st_size);
        if (process->shared != 2 && memcmp(own, definition, size) != 0)
            failed = failed || store(own, definition, size) < 0;
        /* Objects of C++ are constants, or streams that have one buffer anyway. */
        const int of_mpi = strncmp(name, "ompi_", 5) == 0 || strncmp(name, "MPI_", 4) == 0;
        if (!is_ours && !of_mpi && strncmp(name, "_Z", 2) != 0)
            failed = failed || bind_variable(process, definition, own) < 0;
    }
    while (count > 0)
        dlclose(libraries[--count]);
    return failed ? -1 : 0;
}
