/* Steps of one-sided communication, files and the other chapters. */
#include "steps.h"
#include <unistd.h>

static int open_epoch(MPI_Win win, const char *how, MPI_Group *group, int size)
{
    if (is(how, "fence"))
        MPI_Win_fence(0, win);
    else if (is(how, "groups")) {
        MPI_Win_get_group(win, group);
        MPI_Win_post(*group, 0, win);
        MPI_Win_start(*group, 0, win);
    } else if (is(how, "lock_all"))
        MPI_Win_lock_all(0, win);
    else
        for (int target = 0; target < size; target++)
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    return is(how, "lock_all") || is(how, "shared");
}

static void close_epoch(MPI_Win win, const char *how, MPI_Group *group, int size)
{
    if (is(how, "fence"))
        MPI_Win_fence(0, win);
    else if (is(how, "groups")) {
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        MPI_Group_free(group);
    } else if (is(how, "lock_all"))
        MPI_Win_unlock_all(win);
    else
        for (int target = 0; target < size; target++)
            MPI_Win_unlock(target, win);
}

/* Accesses of all ranks to each other's windows: to elements of their own, or by one operator. */
void one_sided(MPI_Comm comm, const struct step *step)
{
    const MPI_Op operators[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
    int rank = rank_in(comm), size = size_of(comm), count = 1 + step->count, room = size * count;
    int target = (rank + step->a) % size, bytes = width(step->dtype), at = rank * count;
    const char *access = step->access;
    MPI_Op op = operators[step->salt % 4];
    MPI_Datatype kind = element(step->dtype);
    char *memory, mine[count * bytes], got[count * bytes], theirs[room * bytes], *compare;
    MPI_Group group;
    MPI_Request request;
    MPI_Win win;
    if (step->b % 2)
        MPI_Win_allocate((MPI_Aint)room * bytes, bytes, MPI_INFO_NULL, comm, &memory, &win);
    else {
        memory = malloc((size_t)room * bytes);
        MPI_Win_create(memory, (MPI_Aint)room * bytes, bytes, MPI_INFO_NULL, comm, &win);
    }
    numbers(step->dtype, memory, room, rank);
    MPI_Barrier(comm);
    numbers(step->dtype, mine, count, rank + step->salt);
    fill(step->dtype, got, count);
    numbers(step->dtype, theirs, room, target);
    compare = theirs + at * bytes;
    if (step->salt % 2)
        compare[0] ^= 64;
    if (step->dtype == F8 && is(access, "swap"))
        access = "put";
    int passive = open_epoch(win, step->epoch, &group, size);
    if (is(access, "put"))
        MPI_Put(mine, count, kind, target, at, count, kind, win);
    else if (is(access, "get"))
        MPI_Get(got, count, kind, target, (target + step->b) % size * count, count, kind, win);
    else if (is(access, "accumulate"))
        MPI_Accumulate(mine, count, kind, target, 0, count, kind, op, win);
    else if (is(access, "get_accumulate"))
        MPI_Get_accumulate(mine, count, kind, got, count, kind, target, at, count, kind, op, win);
    else if (is(access, "no_op"))
        MPI_Get_accumulate(NULL, 0, kind, got, count, kind, target, at, count, kind, MPI_NO_OP,
                           win);
    else if (is(access, "fetch"))
        MPI_Fetch_and_op(mine, got, kind, target, at, op, win);
    else if (is(access, "swap"))
        MPI_Compare_and_swap(mine, compare, got, kind, target, at, win);
    else if (passive) {
        MPI_Rput(mine, count, kind, target, at, count, kind, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_flush(target, win);
        MPI_Rget(got, count, kind, target, at, count, kind, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    close_epoch(win, step->epoch, &group, size);
    MPI_Barrier(comm);
    show(memory, (size_t)room * bytes);
    show(got, sizeof got);
    MPI_Barrier(comm);
    MPI_Win_free(&win);
    if (step->b % 2 == 0)
        free(memory);
}

/* A shared window: each rank writes a part and reads its neighbour's. */
void shared_window(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), count = 1 + step->count, unit;
    int32_t *mine, *theirs;
    MPI_Aint size;
    MPI_Win win;
    MPI_Win_allocate_shared(count * 4, 4, MPI_INFO_NULL, comm, &mine, &win);
    MPI_Win_fence(0, win);
    numbers(I4, mine, count, rank + step->salt);
    MPI_Win_fence(0, win);
    MPI_Win_shared_query(win, (rank + step->a) % size_of(comm), &size, &unit, &theirs);
    show(theirs, size);
    say(" %ld %d", (long)size, unit);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

/* Collective and independent accesses to a file, with views. */
void file(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), count = 1 + step->count, mode, length;
    int bytes = width(step->dtype);
    const char *access = step->access;
    MPI_Datatype kind = element(step->dtype), view;
    MPI_Offset total;
    MPI_Request request;
    MPI_Status status;
    MPI_File opened;
    char path[] = "random-program-XXXXXX", mine[count * bytes], got[count * bytes];
    if (rank == 0)
        close(mkstemp(path));
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, comm);
    MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &opened);
    numbers(step->dtype, mine, count, rank + step->salt);
    fill(step->dtype, got, count);
    MPI_Offset own = (MPI_Offset)rank * count * bytes;
    if (is(access, "put") || is(access, "accumulate")) {
        MPI_Type_vector(count, 1, size, kind, &view);
        MPI_Type_commit(&view);
        MPI_File_set_view(opened, (MPI_Offset)rank * bytes, kind, view, "native", MPI_INFO_NULL);
        MPI_File_write_all(opened, mine, count, kind, MPI_STATUS_IGNORE);
        MPI_File_seek(opened, 0, MPI_SEEK_SET);
        MPI_File_read_all(opened, got, count, kind, &status);
        MPI_Type_free(&view);
    } else if (is(access, "get")) {
        MPI_File_write_at_all(opened, own, mine, count, kind, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
        MPI_File_read_at(opened, (MPI_Offset)(rank + 1) % size * count * bytes, got, count, kind,
                         &status);
    } else if (is(access, "fetch") || is(access, "swap")) {
        MPI_File_write_ordered(opened, mine, count, kind, MPI_STATUS_IGNORE);
        MPI_File_seek_shared(opened, 0, MPI_SEEK_SET);
        MPI_File_read_ordered(opened, got, count, kind, &status);
    } else if (is(access, "no_op")) {
        MPI_File_iwrite_at(opened, own, mine, count, kind, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_File_sync(opened);
        MPI_Barrier(comm);
        MPI_File_sync(opened);
        MPI_File_iread_at(opened, (MPI_Offset)(rank + step->a) % size * count * bytes, got, count,
                          kind, &request);
        MPI_Wait(&request, &status);
    } else {
        MPI_File_write_at_all_begin(opened, own, mine, count, kind);
        MPI_File_write_at_all_end(opened, mine, MPI_STATUS_IGNORE);
        MPI_File_read_at_all_begin(opened, own, got, count, kind);
        MPI_File_read_at_all_end(opened, got, &status);
    }
    MPI_Barrier(comm);
    MPI_Get_count(&status, kind, &length);
    MPI_File_get_size(opened, &total);
    MPI_File_get_amode(opened, &mode);
    show(got, sizeof got);
    say(" %d %ld %d", length, (long)total, mode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
    MPI_File_close(&opened);
    if (rank == 0) {
        FILE *stream = fopen(path, "rb");
        char *content = malloc(total + 1);
        show(content, fread(content, 1, total, stream));
        fclose(stream);
        free(content);
        unlink(path);
    }
}

/* Partitioned messages around the ring, started several times. */
void partitioned(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), parts = 1 + step->b, count = 1 + step->a;
    MPI_Datatype datatype = step->type();
    MPI_Request requests[2];
    if (size > 1) {
        struct items out = items(datatype, count * parts, rank + step->salt, 1);
        struct items into = items(datatype, count * parts, -1, 1);
        MPI_Psend_init(out.memory, parts, count, datatype, (rank + 1) % size, 5, comm,
                       MPI_INFO_NULL, &requests[0]);
        MPI_Precv_init(into.memory, parts, count, datatype, modulo(rank - 1, size), 5, comm,
                       MPI_INFO_NULL, &requests[1]);
        for (int turn = 0; turn < 1 + step->salt % 2; turn++) {
            MPI_Startall(2, requests);
            for (int part = parts - 1; part >= 0; part--)
                MPI_Pready(part, requests[0]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
        free(out.memory);
        show_items(into);
    }
    MPI_Type_free(&datatype);
}

/* The algebra of groups. */
void groups(MPI_Comm comm, const struct step *step)
{
    int size = size_of(comm), ranks[size], some = 0, spans[1][3] = {{0, size - 1, 1 + step->b % 2}};
    MPI_Group all, made[7];
    for (int rank = 0; rank < size; rank++) {
        int chosen = 0;
        for (int i = 0; i < size; i++)
            chosen |= (step->a * i + step->b) % size == rank;
        if (chosen)
            ranks[some++] = rank;
    }
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, some, ranks, &made[0]);
    MPI_Group_excl(all, some, ranks, &made[1]);
    MPI_Group_range_incl(all, 1, spans, &made[2]);
    MPI_Group_union(made[0], made[2], &made[3]);
    MPI_Group_intersection(made[2], made[0], &made[4]);
    MPI_Group_difference(all, made[0], &made[5]);
    MPI_Group_union(made[1], made[0], &made[6]);
    for (int i = 0; i < 7; i++) {
        int members, rank, same;
        MPI_Group_size(made[i], &members);
        MPI_Group_rank(made[i], &rank);
        MPI_Group_compare(made[i], all, &same);
        int own[members + 1], above[members + 1];
        for (int k = 0; k < members; k++)
            own[k] = k;
        MPI_Group_translate_ranks(made[i], members, own, all, above);
        say(" (%d %d %d:", members, rank == MPI_UNDEFINED ? -99 : rank,
            same == MPI_IDENT ? 0 : same == MPI_SIMILAR ? 1 : 2);
        for (int k = 0; k < members; k++)
            say(" %d", above[k]);
        say(")");
        if (made[i] != MPI_GROUP_EMPTY)
            MPI_Group_free(&made[i]);
    }
    MPI_Group_free(&all);
}

/* An intercommunicator between the two halves of the ranks. */
void bridge(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), remote, count = step->count, total, own;
    if (size == 1)
        return;
    int cut = 1 + step->a % (size - 1), low = rank < cut, root;
    MPI_Comm half, inter, merged;
    MPI_Comm_split(comm, low, rank, &half);
    MPI_Intercomm_create(half, 0, comm, low ? cut : 0, step->salt, &inter);
    MPI_Comm_remote_size(inter, &remote);
    char mine[count * 4 + 1], got[count * 4 + 1], many[remote * count * 4 + 1], word[THING];
    numbers(I4, mine, count, rank);
    fill(I4, got, count);
    fill(I4, many, count * remote);
    MPI_Allreduce(mine, got, count, MPI_INT32_T, MPI_SUM, inter);
    MPI_Allgather(mine, count, MPI_INT32_T, many, count, MPI_INT32_T, inter);
    show(got, count * 4);
    show(many, remote * count * 4);
    root = !low ? 0 : rank_in(half) == 0 ? MPI_ROOT : MPI_PROC_NULL;
    memset(word, 0, sizeof word);
    if (root == MPI_ROOT)
        thing(step->kind, rank, word);
    MPI_Bcast(word, sizeof word, MPI_CHAR, root, inter);
    show(word, sizeof word);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, inter);
    MPI_Intercomm_merge(inter, low == step->b % 2, &merged);
    own = rank_in(merged);
    int all[size];
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, merged);
    say(" %d %d %d %d", total, size_of(inter), remote, own);
    show(all, sizeof all);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static int copy_larger(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    *(void **)out = (char *)in + *(int *)extra;
    *flag = 1;
    (void)comm, (void)key;
    return MPI_SUCCESS;
}

static int say_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    say(" deleted %ld", (long)value);
    (void)comm, (void)key, (void)extra;
    return MPI_SUCCESS;
}

/* Attributes and info objects through Comm_dup. */
void attributes(MPI_Comm comm, const struct step *step)
{
    MPI_Comm_copy_attr_function *copies[] = {MPI_COMM_DUP_FN, MPI_COMM_NULL_COPY_FN, copy_larger};
    int key, flag, keys, more = 1, length;
    void *value;
    char name[MPI_MAX_INFO_KEY + 1], text[80];
    MPI_Comm twin, other;
    MPI_Info info;
    MPI_Comm_create_keyval(copies[step->b % 3], say_deleted, &key, &more);
    MPI_Comm_dup(comm, &twin);
    MPI_Comm_set_attr(twin, key, (void *)(long)step->salt);
    MPI_Info_create(&info);
    MPI_Info_set(info, "a", "1");
    snprintf(name, sizeof name, "k%d", step->a);
    MPI_Info_set(info, name, step->kind);
    MPI_Comm_dup_with_info(twin, info, &other);
    MPI_Comm_get_attr(other, key, &value, &flag);
    say(" %d %ld", flag, flag ? (long)value : 0);
    MPI_Comm_get_attr(twin, key, &value, &flag);
    say(" %d %ld", flag, flag ? (long)value : 0);
    MPI_Info_get_nkeys(info, &keys);
    for (int i = 0; i < keys; i++) {
        MPI_Info_get_nthkey(info, i, name);
        length = sizeof text;
        MPI_Info_get_string(info, name, &length, text, &flag);
        say(" %s=%s (%d)", name, text, length);
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&other);
    MPI_Comm_set_attr(twin, key, (void *)-1L);
    MPI_Comm_free(&twin);
    MPI_Comm_free_keyval(&key);
    say(" %d", key == MPI_KEYVAL_INVALID);
}

/* A communicator of a group, without a parent. */
void from_group(MPI_Comm comm, const struct step *step)
{
    int value, total, same;
    char tag[40];
    MPI_Group group, other;
    MPI_Comm made;
    MPI_Comm_group(comm, &group);
    snprintf(tag, sizeof tag, "tag %d", step->salt);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    value = rank_in(made) * 3 + 1;
    MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, made);
    MPI_Comm_group(made, &other);
    MPI_Group_compare(group, other, &same);
    say(" %d %d", total, same == MPI_IDENT);
    MPI_Group_free(&other);
    MPI_Group_free(&group);
    MPI_Comm_free(&made);
}

/* Many elements: other protocols and algorithms. */
void large(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), count = 3000 * (1 + step->a) + step->count;
    size_t bytes = count * width(step->dtype);
    MPI_Datatype kind = element(step->dtype);
    char mine[bytes], total[bytes], passed[bytes], *whole = malloc(bytes * size);
    MPI_Request request;
    numbers(step->dtype, mine, count, rank + 1 + step->salt);
    MPI_Allreduce(mine, total, count, kind, MPI_SUM, comm);
    MPI_Sendrecv(mine, count, kind, (rank + 1) % size, 3, passed, count, kind,
                 modulo(rank - 1, size), 3, comm, MPI_STATUS_IGNORE);
    MPI_Iallgather(mine, count, kind, whole, count, kind, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(mine, count, kind, step->b % size, comm);
    show(total, bytes);
    show(passed, bytes);
    show(whole, bytes * size);
    show(mine, bytes);
    free(whole);
}
