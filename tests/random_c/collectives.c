/* Collective steps. */
#include "steps.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

static enum form form_of(const struct step *step)
{
    return is(step->form, "blocking") ? BLOCKING : is(step->form, "nonblocking") ? NONBLOCKING
                                                                                 : PERSISTENT;
}

/* MPI_NAME, MPI_Iname or MPI_Name_init with these arguments, until it is complete. */
#define CALL(step, Name, Iname, ...)                                                              \
    do {                                                                                          \
        MPI_Request request_;                                                                     \
        switch (form_of(step)) {                                                                  \
        case BLOCKING: MPI_##Name(__VA_ARGS__); break;                                            \
        case NONBLOCKING:                                                                         \
            MPI_##Iname(__VA_ARGS__, &request_);                                                  \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                                               \
            break;                                                                                \
        default:                                                                                  \
            MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_);                             \
            MPI_Start(&request_);                                                                 \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                                               \
            MPI_Request_free(&request_);                                                          \
        }                                                                                         \
    } while (0)

void bcast(MPI_Comm comm, const struct step *step)
{
    int root = step->a % size_of(comm), here = rank_in(comm) == root;
    MPI_Datatype datatype = step->type();
    struct items data = items(datatype, step->count, here ? step->salt : -1, 1);
    CALL(step, Bcast, Ibcast, data.memory, step->count, datatype, root, comm);
    MPI_Type_free(&datatype);
    show_items(data);
}

/* Gather, Scatter, Allgather and Alltoall of a derived datatype. */
void regular(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), root = step->a % size, here = rank == root;
    int gather = is(step->name, "Gather"), scatter = is(step->name, "Scatter");
    int alltoall = is(step->name, "Alltoall"), count = step->count;
    int sends = scatter ? (here ? size : 0) : alltoall ? size : 1;
    int takes = gather ? (here ? size : 0) : scatter ? 1 : size;
    MPI_Datatype datatype = step->type();
    struct items out = {NULL, 0}, into = {NULL, 0};
    void *send, *take;
    if (sends)
        out = items(datatype, count, rank + step->salt, sends);
    if (takes)
        into = items(datatype, count, -1, takes);
    send = out.memory;
    take = into.memory;
    if (step->in_place && (here || !(gather || scatter))) {
        if (scatter)
            take = MPI_IN_PLACE;
        else {
            free(into.memory);
            into = items(datatype, count, rank + step->salt, takes);
            send = MPI_IN_PLACE;
            take = into.memory;
        }
    }
    if (gather)
        CALL(step, Gather, Igather, send, count, datatype, take, count, datatype, root, comm);
    else if (scatter)
        CALL(step, Scatter, Iscatter, send, count, datatype, take, count, datatype, root, comm);
    else if (alltoall)
        CALL(step, Alltoall, Ialltoall, send, count, datatype, take, count, datatype, comm);
    else
        CALL(step, Allgather, Iallgather, send, count, datatype, take, count, datatype, comm);
    MPI_Type_free(&datatype);
    free(out.memory);
    if (into.memory)
        show_items(into);
}

/* Displacements of blocks with gaps; returns the whole length. */
static int layout(int size, const int *counts, int gap, int *starts)
{
    int at = gap;
    for (int i = 0; i < size; i++) {
        starts[i] = at;
        at += counts[i] + gap;
    }
    return at;
}

static int count_of(const struct step *step, int i)
{
    return step->counts[i % step->number_of_counts];
}

static void all_to_all(MPI_Comm comm, const struct step *step, int gap)
{
    int rank = rank_in(comm), size = size_of(comm), bytes = width(step->dtype);
    int sent[size], taken[size], at[size], to[size];
    MPI_Datatype kinds[size];
    for (int i = 0; i < size; i++) {
        sent[i] = count_of(step, rank + 2 * i);
        taken[i] = count_of(step, i + 2 * rank);
        kinds[i] = element(step->dtype);
    }
    int room = layout(size, sent, gap, at), space = layout(size, taken, gap, to);
    char out[room * bytes + 1], got[space * bytes + 1];
    numbers(step->dtype, out, room, rank + step->salt);
    fill(step->dtype, got, space);
    if (is(step->name, "Alltoallw")) {
        for (int i = 0; i < size; i++) {
            at[i] *= bytes;
            to[i] *= bytes;
        }
        CALL(step, Alltoallw, Ialltoallw, out, sent, at, kinds, got, taken, to, kinds, comm);
    } else
        CALL(step, Alltoallv, Ialltoallv, out, sent, at, *kinds, got, taken, to, *kinds, comm);
    show(got, space * bytes);
}

/* The v forms: as many elements as the counts of the step say, gaps between the blocks. */
void varying(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), root = step->a % size, here = rank == root;
    int counts[size], starts[size], gap = step->b % 3, bytes = width(step->dtype);
    MPI_Datatype kind = element(step->dtype);
    if (is(step->name, "Alltoallv") || is(step->name, "Alltoallw")) {
        all_to_all(comm, step, gap);
        return;
    }
    for (int i = 0; i < size; i++)
        counts[i] = count_of(step, i);
    int total = layout(size, counts, gap, starts), own = counts[rank];
    char mine[own * bytes + 1], all[total * bytes + 1];
    void *send = mine;
    numbers(step->dtype, mine, own, rank + step->salt);
    if (is(step->name, "Scatterv")) {
        numbers(step->dtype, all, total, step->salt);
        fill(step->dtype, mine, own);
        CALL(step, Scatterv, Iscatterv, here ? all : NULL, here ? counts : NULL,
             here ? starts : NULL, kind, mine, own, kind, root, comm);
        show(mine, own * bytes);
        return;
    }
    fill(step->dtype, all, total);
    if (step->in_place && (here || is(step->name, "Allgatherv"))) {
        memcpy(all + starts[rank] * bytes, mine, own * bytes);
        send = MPI_IN_PLACE;
    }
    if (is(step->name, "Gatherv"))
        CALL(step, Gatherv, Igatherv, send, own, kind, here ? all : NULL, here ? counts : NULL,
             here ? starts : NULL, kind, root, comm);
    else
        CALL(step, Allgatherv, Iallgatherv, send, own, kind, all, counts, starts, kind, comm);
    show(all, total * bytes);
}

/* Compose maps x -> a*x + b; associative, not commutative. */
static void affine(void *first, void *second, int *count, MPI_Datatype *datatype)
{
    int32_t *x = first, *y = second;
    for (int i = 0; i < 2 * *count; i += 2) {
        y[i + 1] = (int32_t)((uint32_t)x[i] * y[i + 1] + x[i + 1]);
        y[i] = (int32_t)((uint32_t)x[i] * y[i]);
    }
    (void)datatype;
}

void reduction(MPI_Comm comm, const struct step *step)
{
    const MPI_Op all[] = {MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,    MPI_BAND,   MPI_BOR,
                          MPI_BXOR, MPI_LAND, MPI_LOR,  MPI_LXOR,   MPI_MINLOC, MPI_MAXLOC};
    int rank = rank_in(comm), size = size_of(comm), root = step->a % size, here = rank == root;
    int pairs = step->operator >= 10, own = step->operator == 12, wide = pairs ? 2 : 1;
    enum element which = pairs ? I4 : step->dtype;
    int count = step->count, counts[size], total = 0, length = count, less = count;
    size_t bytes = width(which);
    MPI_Datatype kind = pairs ? MPI_2INT : element(which);
    MPI_Op op;
    if (own) {
        MPI_Type_contiguous(2, MPI_INT32_T, &kind);
        MPI_Type_commit(&kind);
        MPI_Op_create(affine, 0, &op);
    } else
        op = all[pairs ? step->operator : step->operator % (step->dtype == F8 ? 4 : 10)];
    for (int i = 0; i < size; i++)
        total += counts[i] = count_of(step, i);
    if (is(step->name, "Reduce_scatter")) {
        length = total;
        less = counts[rank];
    } else if (is(step->name, "Reduce_scatter_block"))
        length = size * count;
    char mine[length * wide * bytes + 1], other[less * wide * bytes + 1];
    char *got = other;
    void *send = mine;
    numbers(which, mine, length * wide, rank + step->salt);
    fill(which, other, less * wide);
    if (step->in_place && (here || !is(step->name, "Reduce"))) {
        got = mine;
        send = MPI_IN_PLACE;
    }
    if (is(step->name, "Reduce"))
        CALL(step, Reduce, Ireduce, send, here ? got : NULL, count, kind, op, root, comm);
    else if (is(step->name, "Allreduce"))
        CALL(step, Allreduce, Iallreduce, send, got, count, kind, op, comm);
    else if (is(step->name, "Scan"))
        CALL(step, Scan, Iscan, send, got, count, kind, op, comm);
    else if (is(step->name, "Exscan"))
        CALL(step, Exscan, Iexscan, send, got, count, kind, op, comm);
    else if (is(step->name, "Reduce_scatter"))
        CALL(step, Reduce_scatter, Ireduce_scatter, send, got, counts, kind, op, comm);
    else
        CALL(step, Reduce_scatter_block, Ireduce_scatter_block, send, got, count, kind, op, comm);
    if (own) {
        MPI_Op_free(&op);
        MPI_Type_free(&kind);
    }
    /* The data of the first rank of an Exscan, and behind a part in place, is undefined. */
    if (!is(step->name, "Exscan") || rank)
        show(got, less * wide * bytes);
}

/* Joins texts of 16 bytes in order, so an order that is not that of ranks would show. */
static void join(void *first, void *second, int *count, MPI_Datatype *datatype)
{
    for (int i = 0; i < *count; i++) {
        char *x = (char *)first + 16 * i, *y = (char *)second + 16 * i, both[32];
        snprintf(both, sizeof both, "%.15s%.15s", x, y);
        strncpy(y, both, 15);
        y[15] = 0;
    }
    (void)datatype;
}

static void joined(MPI_Comm comm, const struct step *step, int root)
{
    int rank = rank_in(comm), here = rank == root;
    char mine[16] = "", got[16] = "";
    MPI_Datatype text;
    MPI_Op op;
    MPI_Type_contiguous(16, MPI_CHAR, &text);
    MPI_Type_commit(&text);
    MPI_Op_create(join, 0, &op);
    snprintf(mine, sizeof mine, "%d.", rank + step->salt);
    if (is(step->name, "reduce"))
        MPI_Reduce(mine, got, 1, text, op, root, comm);
    else if (is(step->name, "allreduce"))
        MPI_Allreduce(mine, got, 1, text, op, comm);
    else if (is(step->name, "scan"))
        MPI_Scan(mine, got, 1, text, op, comm);
    else
        MPI_Exscan(mine, got, 1, text, op, comm);
    if (is(step->name, "reduce") ? here : !is(step->name, "exscan") || rank)
        say(" %s", got);
    MPI_Op_free(&op);
    MPI_Type_free(&text);
}

/* Bytes whose number only their sender knows. */
void object_collective(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), root = step->a % size, here = rank == root;
    int lengths[size], theirs[size], starts[size], places[size], total = 0, length;
    char(*mine)[THING] = malloc((size_t)size * THING), *got = malloc((size_t)size * THING);
    for (int i = 0; i < size; i++) {
        lengths[i] = thing(step->kind, rank * size + i + step->salt, mine[i]);
        starts[i] = i * THING;
    }
    length = *lengths;
    if (is(step->name, "bcast")) {
        MPI_Bcast(&length, 1, MPI_INT, root, comm);
        MPI_Bcast(*mine, length, MPI_CHAR, root, comm);
        show(*mine, length);
    } else if (is(step->name, "scatter")) {
        MPI_Scatter(lengths, 1, MPI_INT, &length, 1, MPI_INT, root, comm);
        MPI_Scatterv(mine, lengths, starts, MPI_CHAR, got, length, MPI_CHAR, root, comm);
        show(got, length);
    } else if (is(step->name, "gather") || is(step->name, "allgather") ||
               is(step->name, "alltoall")) {
        int gather = is(step->name, "gather");
        if (is(step->name, "alltoall"))
            MPI_Alltoall(lengths, 1, MPI_INT, theirs, 1, MPI_INT, comm);
        else if (gather)
            MPI_Gather(&length, 1, MPI_INT, theirs, 1, MPI_INT, root, comm);
        else
            MPI_Allgather(&length, 1, MPI_INT, theirs, 1, MPI_INT, comm);
        for (int i = 0; i < size && (here || !gather); i++) {
            places[i] = total;
            total += theirs[i];
        }
        if (is(step->name, "alltoall"))
            MPI_Alltoallv(mine, lengths, starts, MPI_CHAR, got, theirs, places, MPI_CHAR, comm);
        else if (gather)
            MPI_Gatherv(*mine, length, MPI_CHAR, got, theirs, places, MPI_CHAR, root, comm);
        else
            MPI_Allgatherv(*mine, length, MPI_CHAR, got, theirs, places, MPI_CHAR, comm);
        show(got, total);
    } else
        joined(comm, step, root);
    free(mine);
    free(got);
}

/* Neighbourhood collectives, on a communicator that has neighbours. */
void neighbours(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), sources, targets, count = step->count, topology, weighted;
    size_t bytes = width(step->dtype);
    MPI_Datatype kind = element(step->dtype);
    MPI_Topo_test(comm, &topology);
    if (topology == MPI_CART) {
        MPI_Cartdim_get(comm, &sources);
        targets = sources *= 2;
    } else if (topology == MPI_DIST_GRAPH) {
        MPI_Dist_graph_neighbors_count(comm, &sources, &targets, &weighted);
        int from[sources], to[targets], in[sources], out[targets];
        MPI_Dist_graph_neighbors(comm, sources, from, weighted ? in : MPI_UNWEIGHTED, targets, to,
                                 weighted ? out : MPI_UNWEIGHTED);
        for (int i = 0; i < sources; i++)
            say(" %d", from[i]);
        for (int i = 0; i < targets; i++)
            say(" %d", to[i]);
    } else {
        int all[size_of(comm)];
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm);
        show(all, sizeof all);
        return;
    }
    char mine[targets * count * bytes + 1], one[sources * count * bytes + 1];
    char each[sources * count * bytes + 1];
    fill(step->dtype, one, sources * count);
    fill(step->dtype, each, sources * count);
    numbers(step->dtype, mine, count, rank);
    CALL(step, Neighbor_allgather, Ineighbor_allgather, mine, count, kind, one, count, kind, comm);
    show(one, sources * count * bytes);
    numbers(step->dtype, mine, targets * count, rank * 3);
    CALL(step, Neighbor_alltoall, Ineighbor_alltoall, mine, count, kind, each, count, kind, comm);
    show(each, sources * count * bytes);
    if (step->b % 2) {
        int sent[targets + 1], taken[sources + 1], at[targets + 1], to[sources + 1];
        for (int i = 0; i < targets; i++) {
            sent[i] = count;
            at[i] = (targets - 1 - i) * count;
        }
        for (int i = 0; i < sources; i++) {
            taken[i] = count;
            to[i] = (sources - 1 - i) * count;
        }
        CALL(step, Neighbor_alltoallv, Ineighbor_alltoallv, mine, sent, at, kind, each, taken, to,
             kind, comm);
        show(each, sources * count * bytes);
        CALL(step, Neighbor_allgatherv, Ineighbor_allgatherv, mine, targets ? count : 0, kind, one,
             taken, to, kind, comm);
        show(one, sources * count * bytes);
    }
}
