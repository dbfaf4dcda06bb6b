/* The memory of many ranks in huge pages.

   Ranks that run in turn touch other memory at each switch. With pages of 4 KiB, the processor looks
   up nearly each of these addresses in tables that are in no cache; with pages of 2 MiB hardly any.
   The system gives these only to memory that asks for them and that is mapped in one piece.

   Three kinds of memory hold nearly all of a rank: the arenas of Python's objects; the stacks of its
   frames (isolation/frame_stacks.c), which are arenas too; and the copy of its C stack while it
   waits, a block of 1 to 2 KiB. The C library would put each copy into the hole that another one has
   left. Such a hole is often a little too small, and remains. Here, all copies have the same size.

   All functions are called with the interpreter's lock. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)2 << 20) /* bytes of a huge page */
#define REGION_BITS 25
#define REGION ((size_t)1 << REGION_BITS) /* bytes that are mapped at once, and their alignment */
#define LEAST ((size_t)64 << 10) /* bytes: arenas have 256 KiB or 1 MiB */
#define SMALL 1024 /* bytes: larger blocks, */
#define BLOCK 2048 /* up to this size, are in regions */
#define ADDRESS_BITS 48 /* of a process, unless it asks for more */

typedef struct {
    char *next, *end; /* the memory of the latest region that is left */
} Space;

typedef struct Block {
    struct Block *next;
} Block;

static PyObjectArenaAllocator arenas; /* those before */
static PyMemAllocatorEx blocks;
static Space of_arenas, of_blocks;
static Block *unused;
/* For each region of the addresses of a process, whether it is one for blocks. */
static char holds_blocks[(size_t)1 << (ADDRESS_BITS - REGION_BITS)];

/* A region in huge pages; NULL if there is no memory. */
static char *map_region(void)
{
    char *begin = mmap(NULL, 2 * REGION, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        return NULL;
    char *region = (char *)(((uintptr_t)begin + REGION - 1) & ~(REGION - 1));
    if (region > begin)
        munmap(begin, region - begin);
    munmap(region + REGION, begin + REGION - region);
    madvise(region, REGION, MADV_HUGEPAGE); /* without it, the memory is as before */
    return region;
}

/* The next bytes of a space; NULL if there is no memory. `size` is a power of 2. */
static char *take(Space *space, size_t size)
{
    if (space->next == space->end) {
        char *region = map_region();
        if (region == NULL)
            return NULL;
        space->next = region;
        space->end = region + REGION;
    }
    char *taken = space->next;
    space->next += size;
    return taken;
}

/* The interpreter unmaps arenas, so they need not be freed here. */
static void *new_arena(void *context, size_t size)
{
    static size_t usual;
    char *arena = NULL;
    if (usual == 0 && size >= LEAST && size <= PAGE && (size & (size - 1)) == 0)
        usual = size;
    if (size == usual)
        arena = take(&of_arenas, size);
    return arena == NULL ? arenas.alloc(context, size) : arena;
}

static int is_block(void *block)
{
    uintptr_t region = (uintptr_t)block >> REGION_BITS;
    return region < sizeof holds_blocks && holds_blocks[region];
}

static void *new_block(void *context, size_t size)
{
    if (size <= SMALL || size > BLOCK)
        return blocks.malloc(context, size);
    Block *block = unused;
    if (block != NULL) {
        unused = block->next;
        return block;
    }
    block = (Block *)take(&of_blocks, BLOCK);
    uintptr_t region = (uintptr_t)block >> REGION_BITS;
    if (block == NULL || region >= sizeof holds_blocks)
        return blocks.malloc(context, size);
    holds_blocks[region] = 1;
    return block;
}

static void free_block(void *context, void *block)
{
    if (!is_block(block)) {
        blocks.free(context, block);
        return;
    }
    ((Block *)block)->next = unused;
    unused = block;
}

static void *resize_block(void *context, void *block, size_t size)
{
    if (block == NULL)
        return new_block(context, size);
    if (!is_block(block))
        return blocks.realloc(context, block, size);
    if (size > SMALL && size <= BLOCK)
        return block;
    void *other = blocks.malloc(context, size);
    if (other != NULL) {
        memcpy(other, block, size < BLOCK ? size : BLOCK);
        free_block(context, block);
    }
    return other;
}

static PyObject *install(PyObject *module, PyObject *nothing)
{
    static int installed;
    if (!installed) {
        installed = 1;
        PyObject_GetArenaAllocator(&arenas);
        PyObjectArenaAllocator own = {arenas.ctx, new_arena, arenas.free};
        PyObject_SetArenaAllocator(&own);
        PyMem_GetAllocator(PYMEM_DOMAIN_MEM, &blocks);
        PyMemAllocatorEx of_mem = {blocks.ctx, new_block, blocks.calloc, resize_block, free_block};
        PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &of_mem);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"install", install, METH_NOARGS,
     "install(): from now on, put new objects and stacks of this process into huge pages."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "huge_pages", "The memory of many ranks in huge pages.", -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_huge_pages(void)
{
    return PyModule_Create(&definition);
}
