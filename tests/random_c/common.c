/* Data, observations and communicators of random programs. */
#include "steps.h"
#include <stdarg.h>

const char *const OWN = "own", *const MINLOC = "MINLOC", *const MAXLOC = "MAXLOC";
static FILE *output;
static int program;

MPI_Datatype element(enum element which)
{
    const MPI_Datatype all[] = {MPI_INT16_T, MPI_INT32_T, MPI_UINT64_T, MPI_DOUBLE};
    return all[which];
}

size_t width(enum element which)
{
    const size_t all[] = {2, 4, 8, 8};
    return all[which];
}

int is(const char *text, const char *other) { return strcmp(text, other) == 0; }

int modulo(int number, int size) { return (number % size + size) % size; }

int rank_in(MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int size_of(MPI_Comm comm)
{
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

void say(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(output, format, values);
    va_end(values);
}

void show(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    if (size <= 64) {
        say(" ");
        for (size_t i = 0; i < size; i++)
            say("%02x", bytes[i]);
        return;
    }
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    say(" %zu:%016llx", size, (unsigned long long)hash);
}

void show_items(struct items items)
{
    show(items.memory, items.size);
    free(items.memory);
}

static size_t larger(MPI_Aint one, MPI_Aint other) { return one > other ? one : other; }

struct items items(MPI_Datatype datatype, int count, int salt, int blocks)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    struct items made;
    MPI_Type_get_extent(datatype, &lower, &extent);
    MPI_Type_get_true_extent(datatype, &true_lower, &true_extent);
    made.size = 64 + labs(lower) + labs(true_lower);
    made.size += ((size_t)count * blocks + 1) * larger(larger(extent, true_extent), 1);
    made.memory = malloc(made.size);
    for (size_t i = 0; i < made.size; i++)
        made.memory[i] = salt < 0 ? 0xA5 : (i * 31 + salt * 17 + 5) % 251;
    return made;
}

static void put(enum element which, void *data, int index, int number)
{
    switch (which) {
    case I2: ((int16_t *)data)[index] = number; break;
    case I4: ((int32_t *)data)[index] = number; break;
    case U8: ((uint64_t *)data)[index] = number; break;
    default: ((double *)data)[index] = number;
    }
}

/* Small numbers: sums and products in any order are the same. */
void numbers(enum element which, void *data, int count, int salt)
{
    for (int i = 0; i < count; i++)
        put(which, data, i, (i * 5 + salt * 3) % 4 + 1);
}

void fill(enum element which, void *data, int count)
{
    for (int i = 0; i < count; i++)
        put(which, data, i, 77);
}

size_t thing(const char *kind, int salt, char *bytes)
{
    if (is(kind, "bytes")) {
        memset(bytes, salt % 256, 3000 + salt % 7);
        return 3000 + salt % 7;
    }
    if (is(kind, "int"))
        return sprintf(bytes, "%d", salt * 7 + 1);
    return sprintf(bytes, "%s %*d %s", kind, 1 + salt % 40, salt, salt % 3 ? "" : "none");
}

MPI_Comm communicator(MPI_Comm parent, const char *kind, int a, int b)
{
    int rank = rank_in(parent), size = size_of(parent);
    MPI_Comm made = MPI_COMM_NULL;
    if (is(kind, "dup"))
        MPI_Comm_dup(parent, &made);
    else if (is(kind, "clone")) {
        MPI_Request request;
        MPI_Comm_idup(parent, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (is(kind, "split")) {
        int color = (rank + b) % 5 == 4 ? MPI_UNDEFINED : (rank * a + b) % 2;
        MPI_Comm_split(parent, color, (rank * (a + 1)) % 3 - 1, &made);
    } else if (is(kind, "create") || is(kind, "create_group")) {
        int some = 1 + (a + b) % size, chosen[some], member = 0;
        MPI_Group everybody, group;
        for (int i = 0; i < some; i++) {
            chosen[i] = modulo(i * (b % 2 ? 1 : -1) + a, size);
            member |= chosen[i] == rank;
        }
        MPI_Comm_group(parent, &everybody);
        MPI_Group_incl(everybody, some, chosen, &group);
        MPI_Group_free(&everybody);
        if (is(kind, "create"))
            MPI_Comm_create(parent, group, &made);
        else if (member)
            MPI_Comm_create_group(parent, group, 3, &made);
        MPI_Group_free(&group);
    } else if (is(kind, "cart")) {
        int many = 1 + a % 2, dims[2] = {0, 0}, periods[2] = {b & 1, b >> 1 & 1};
        MPI_Dims_create(size, many, dims);
        MPI_Cart_create(parent, many, dims, periods, 0, &made);
    } else {
        int to[2] = {(rank + 1 + a) % size, (rank + b) % size};
        int from[2] = {modulo(rank - 1 - a, size), modulo(rank - b, size)};
        MPI_Dist_graph_create_adjacent(parent, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &made);
    }
    return made;
}

/* The view of a rank on its communicator. */
void describe(MPI_Comm comm, MPI_Comm parent)
{
    if (comm == MPI_COMM_NULL) {
        say(" null");
        return;
    }
    MPI_Group group, above;
    int size = size_of(comm), same, topology, ranks[size], seen[size];
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(parent, &above);
    MPI_Comm_compare(comm, parent, &same);
    MPI_Topo_test(comm, &topology);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    MPI_Group_translate_ranks(group, size, ranks, above, seen);
    say(" %d of %d", rank_in(comm), size);
    say(" %s", same == MPI_CONGRUENT ? "congruent" : same == MPI_SIMILAR ? "similar" : "unequal");
    for (int i = 0; i < size; i++)
        say(" %d", seen[i]);
    if (topology == MPI_CART) {
        int many, dims[2], periods[2], coords[2], source, dest;
        MPI_Cartdim_get(comm, &many);
        MPI_Cart_get(comm, many, dims, periods, coords);
        MPI_Cart_shift(comm, 0, 1, &source, &dest);
        for (int i = 0; i < many; i++)
            say(" %d %d %d", dims[i], periods[i], coords[i]);
        say(" shift %d %d", source == MPI_PROC_NULL ? -99 : source,
            dest == MPI_PROC_NULL ? -99 : dest);
    } else
        say(" %s", topology == MPI_DIST_GRAPH ? "graph" : "flat");
    MPI_Group_free(&group);
    MPI_Group_free(&above);
}

void finish(MPI_Request *request)
{
    if (*request == MPI_REQUEST_NULL)
        return;
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (*request != MPI_REQUEST_NULL)
        MPI_Request_free(request);
}

void begin_step(int number, const char *what) { say("\n%d %d %s:", program, number, what); }

int main(int argc, char **argv)
{
    char name[4096];
    MPI_Init(&argc, &argv);
    snprintf(name, sizeof name, "%s.%d", argv[1], rank_in(MPI_COMM_WORLD));
    output = fopen(name, "w");
    for (program = 0; program < NUMBER_OF_PROGRAMS; program++)
        PROGRAMS[program]();
    say("\n");
    fclose(output);
    MPI_Finalize();
    return 0;
}
