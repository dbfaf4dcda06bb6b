/* Variables of MPI libraries of which an executable has copies.

   The loader looks for what it copies in the libraries of the process and in the executable itself, not
   in the libraries that the executable needs. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <elf.h>
#include <string.h>

#include "engine.h"

#if defined(__x86_64__)
#define COPY R_X86_64_COPY
#else
#define COPY R_AARCH64_COPY
#endif
#define MOST_LIBRARIES 8

void
psm_copy_objects(const struct link_map *map,
                 void (*other)(void *data, const char *name, void *copy), void *data)
{
    const ElfW(Rela) *entries = NULL;
    size_t bytes = 0, count = 0;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    void *libraries[MOST_LIBRARIES];
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++)
        switch (each->d_tag) {
        case DT_RELA: entries = (const void *)each->d_un.d_ptr; break;
        case DT_RELASZ: bytes = each->d_un.d_val; break;
        case DT_SYMTAB: symbols = (const void *)each->d_un.d_ptr; break;
        case DT_STRTAB: names = (const void *)each->d_un.d_ptr; break;
        }
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++)
        if (each->d_tag == DT_NEEDED && strncmp(names + each->d_un.d_val, "psm_", 4) == 0
            && count < MOST_LIBRARIES) {
            libraries[count] = dlopen(names + each->d_un.d_val, RTLD_LAZY | RTLD_NOLOAD);
            count += libraries[count] != NULL;
        }
    for (size_t i = 0; i < bytes / sizeof *entries; i++) {
        if (ELF64_R_TYPE(entries[i].r_info) != COPY)
            continue;
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(entries[i].r_info)];
        const char *name = names + symbol->st_name;
        if (strncmp(name, "ompi_", 5) != 0 && strncmp(name, "MPI_", 4) != 0) {
            other(data, name, (void *)(map->l_addr + entries[i].r_offset));
            continue;
        }
        for (size_t j = 0; j < count; j++) {
            void *object = dlsym(libraries[j], name);
            const ElfW(Sym) *original = NULL;
            Dl_info place;
            if (object == NULL
                || !dladdr1(object, &place, (void **)&original, RTLD_DL_SYMENT) || original == NULL)
                continue;
            size_t size = original->st_size < symbol->st_size ? original->st_size : symbol->st_size;
            memcpy((void *)(map->l_addr + entries[i].r_offset), object, size);
            break;
        }
    }
    while (count > 0)
        dlclose(libraries[--count]);
}
