/* Steps of point-to-point messages, and of packing. */
#include "steps.h"

static MPI_Request start_send(MPI_Comm comm, const char *how, const void *data, int count,
                              MPI_Datatype datatype, int dest, int tag)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (is(how, "Send_init")) {
        MPI_Send_init(data, count, datatype, dest, tag, comm, &request);
        MPI_Start(&request);
    } else if (is(how, "Isend"))
        MPI_Isend(data, count, datatype, dest, tag, comm, &request);
    else if (is(how, "Issend"))
        MPI_Issend(data, count, datatype, dest, tag, comm, &request);
    else if (is(how, "Ssend"))
        MPI_Ssend(data, count, datatype, dest, tag, comm);
    else if (is(how, "Bsend"))
        MPI_Bsend(data, count, datatype, dest, tag, comm);
    else
        MPI_Send(data, count, datatype, dest, tag, comm);
    return request;
}

static MPI_Status receive(MPI_Comm comm, const char *how, void *data, int count,
                          MPI_Datatype datatype, int source, int tag)
{
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    if (is(how, "Irecv")) {
        MPI_Irecv(data, count, datatype, source, tag, comm, &request);
        MPI_Wait(&request, &status);
    } else if (is(how, "Recv_init")) {
        MPI_Recv_init(data, count, datatype, source, tag, comm, &request);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        MPI_Request_free(&request);
    } else if (is(how, "Mprobe")) {
        MPI_Mprobe(source, tag, comm, &message, &status);
        MPI_Mrecv(data, count, datatype, &message, &status);
    } else if (is(how, "Probe")) {
        MPI_Probe(source, tag, comm, &status);
        MPI_Recv(data, count, datatype, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
    } else if (is(how, "Improbe")) {
        int flag = 0;
        while (!flag)
            MPI_Improbe(source, tag, comm, &flag, &message, &status);
        MPI_Imrecv(data, count, datatype, &message, &request);
        MPI_Wait(&request, &status);
    } else
        MPI_Recv(data, count, datatype, source, tag, comm, &status);
    return status;
}

static void tell(MPI_Status *status, MPI_Datatype datatype, int structs)
{
    int count, bytes, parts, cancelled;
    MPI_Get_count(status, datatype, &count);
    MPI_Get_count(status, MPI_BYTE, &bytes);
    MPI_Test_cancelled(status, &cancelled);
    say(" %d %d %d %d %d", status->MPI_SOURCE, status->MPI_TAG,
        count == MPI_UNDEFINED ? -99 : count, bytes, cancelled);
    /* Of some structs MPICH 5.0.2 cannot count the elements. */
    if (!structs) {
        MPI_Get_elements(status, datatype, &parts);
        say(" %d", parts == MPI_UNDEFINED ? -99 : parts);
    }
}

/* One message from a rank to another, of perhaps fewer items than the receiver has room. */
void pair(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), source = step->a % size, bytes;
    int dest = (source + 1 + step->b % (size > 1 ? size - 1 : 1)) % size, tag = step->salt;
    MPI_Datatype datatype = step->type(), taken = datatype;
    int buffered = is(step->send, "Bsend") && source != dest, room = step->count + step->b % 3;
    MPI_Request request = MPI_REQUEST_NULL;
    struct items out = items(datatype, step->count, tag + 1, 1), into;
    MPI_Type_size(datatype, &bytes);
    if (step->element >= 0) {
        taken = element(step->element);
        room = step->count * bytes / (int)width(step->element) + step->b % 3;
    }
    into = items(taken, room, -1, 1);
    char buffer[bytes * step->count + MPI_BSEND_OVERHEAD + 64], *detached;
    if (rank == source) {
        if (buffered)
            MPI_Buffer_attach(buffer, sizeof buffer);
        request = start_send(comm, source == dest ? "Isend" : step->send, out.memory, step->count,
                             datatype, dest, tag);
    }
    if (rank == dest) {
        MPI_Status status = receive(comm, step->receive, into.memory, room, taken,
                                    step->any ? MPI_ANY_SOURCE : source,
                                    step->any ? MPI_ANY_TAG : tag);
        tell(&status, taken, step->structs);
        show(into.memory, into.size);
    }
    finish(&request);
    if (rank == source && buffered) {
        MPI_Buffer_detach(&detached, &bytes);
        say(" %d", detached == buffer && bytes == (int)sizeof buffer);
    }
    /* A wildcard must not take a message of the next step. */
    MPI_Barrier(comm);
    MPI_Type_free(&datatype);
    free(out.memory);
    free(into.memory);
}

/* All ranks send to the rank some ranks on. */
void shift(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), tag = step->salt, count = step->count;
    int dest = (rank + step->a) % size, source = modulo(rank - step->a, size);
    MPI_Datatype datatype = step->type();
    struct items out = items(datatype, count, rank + tag, 1), into = items(datatype, count, -1, 1);
    struct items *result = &into;
    MPI_Status status;
    if (is(step->send, "Ssend")) {
        result = &out;
        MPI_Sendrecv_replace(out.memory, count, datatype, dest, tag, source, tag, comm, &status);
    } else if (is(step->send, "Send") || is(step->send, "Bsend"))
        MPI_Sendrecv(out.memory, count, datatype, dest, tag, into.memory, count, datatype, source,
                     tag, comm, &status);
    else {
        MPI_Request request =
            start_send(comm, step->send, out.memory, count, datatype, dest, tag);
        status = receive(comm, step->receive, into.memory, count, datatype, source, tag);
        finish(&request);
    }
    tell(&status, datatype, step->structs);
    show(result->memory, result->size);
    MPI_Type_free(&datatype);
    free(out.memory);
    free(into.memory);
}

/* All ranks send messages with tags of their own to a root that takes them from any source. */
void fan(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), root = step->a % size;
    int each = 1 + step->b % 3, slots = rank == root ? size * each : 0;
    MPI_Datatype datatype = step->type();
    MPI_Request requests[size * each], sends[each];
    MPI_Status statuses[size * each];
    struct items into[size * each], out[each];
    for (int slot = 0; slot < slots; slot++) {
        /* Some order that is not that of the messages. */
        int which = (slot * 5 + step->salt) % slots;
        if (slots % 5 == 0)
            which = slots - 1 - slot;
        into[slot] = items(datatype, step->count + which % each, -1, 1);
        MPI_Irecv(into[slot].memory, step->count + which % each, datatype, MPI_ANY_SOURCE,
                  which / each * 10 + which % each, comm, &requests[slot]);
    }
    for (int k = 0; k < each; k++) {
        out[k] = items(datatype, step->count, rank * 3 + k, 1);
        MPI_Isend(out[k].memory, step->count, datatype, root, rank * 10 + k, comm, &sends[k]);
    }
    if (is(step->wait, "any")) {
        for (int left = slots; left; left--) {
            MPI_Status status;
            int index;
            MPI_Waitany(slots, requests, &index, &status);
            statuses[index] = status;
        }
    } else if (is(step->wait, "some")) {
        for (int left = slots, done; left; left -= done) {
            MPI_Status some[slots];
            int indices[slots];
            MPI_Waitsome(slots, requests, &done, indices, some);
            for (int i = 0; i < done; i++)
                statuses[indices[i]] = some[i];
        }
    } else if (is(step->wait, "test")) {
        int flag = 0;
        while (!flag)
            MPI_Testall(slots, requests, &flag, statuses);
    } else
        MPI_Waitall(slots, requests, statuses);
    MPI_Waitall(each, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(comm);
    for (int slot = 0; slot < slots; slot++) {
        tell(&statuses[slot], datatype, step->structs);
        show_items(into[slot]);
    }
    for (int k = 0; k < each; k++)
        free(out[k].memory);
    MPI_Type_free(&datatype);
}

/* Bytes of unknown length from all ranks to the rank some ranks on. */
void objects(MPI_Comm comm, const struct step *step)
{
    int rank = rank_in(comm), size = size_of(comm), tag = step->salt, count;
    int dest = (rank + step->a) % size, source = modulo(rank - step->a, size);
    char mine[THING], got[THING];
    int length = thing(step->kind, rank + step->salt, mine);
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    if (is(step->way, "sendrecv"))
        MPI_Sendrecv(mine, length, MPI_CHAR, dest, tag, got, THING, MPI_CHAR, source, tag, comm,
                     &status);
    else if (is(step->way, "blocking") && step->a % size) {
        /* Some ranks must receive first: those for which no lower rank waits. */
        int first = rank < dest;
        for (int turn = 0; turn < 2; turn++)
            if (turn == !first && step->b % 2)
                MPI_Ssend(mine, length, MPI_CHAR, dest, tag, comm);
            else if (turn == !first)
                MPI_Send(mine, length, MPI_CHAR, dest, tag, comm);
            else
                MPI_Recv(got, THING, MPI_CHAR, source, tag, comm, &status);
    } else {
        request = start_send(comm, step->b % 2 ? "Issend" : "Isend", mine, length, MPI_CHAR, dest,
                             tag);
        status = receive(comm, is(step->way, "mprobe") ? "Mprobe" : "Irecv", got, THING, MPI_CHAR,
                         is(step->way, "any") ? MPI_ANY_SOURCE : source, tag);
        finish(&request);
    }
    MPI_Barrier(comm);
    MPI_Get_count(&status, MPI_CHAR, &count);
    say(" %d %d", status.MPI_SOURCE, status.MPI_TAG);
    show(got, count);
}

/* The calls that made a datatype. */
static void tell_contents(MPI_Datatype datatype)
{
    int integers, addresses, datatypes, combiner;
    MPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner);
    say(" [%d %d %d", integers, addresses, datatypes);
    if (combiner == MPI_COMBINER_NAMED) {
        int length;
        char name[MPI_MAX_OBJECT_NAME];
        MPI_Type_get_name(datatype, name, &length);
        say(" %s]", name);
        return;
    }
    int numbers[integers + 1];
    MPI_Aint bytes[addresses + 1];
    MPI_Datatype parts[datatypes + 1];
    MPI_Type_get_contents(datatype, integers, addresses, datatypes, numbers, bytes, parts);
    /* The order of a subarray has another value in each MPI library. */
    for (int i = 0; i < integers; i++)
        if (combiner == MPI_COMBINER_SUBARRAY && i == integers - 1)
            say(" %s", numbers[i] == MPI_ORDER_C ? "C" : "Fortran");
        else
            say(" %d", numbers[i]);
    for (int i = 0; i < addresses; i++)
        say(" %ld", (long)bytes[i]);
    for (int i = 0; i < datatypes; i++) {
        int inner;
        tell_contents(parts[i]);
        MPI_Type_get_envelope(parts[i], &integers, &addresses, &integers, &inner);
        if (inner != MPI_COMBINER_NAMED)
            MPI_Type_free(&parts[i]);
    }
    say("]");
}

/* Items through pack and unpack, and the properties of the datatype. */
void packing(MPI_Comm comm, const struct step *step)
{
    MPI_Datatype plain = step->type(), datatype;
    MPI_Aint lower, extent, true_lower, true_extent;
    int count = step->count, size, length, position = 4;
    MPI_Type_get_extent(plain, &lower, &extent);
    MPI_Type_get_true_extent(plain, &true_lower, &true_extent);
    MPI_Type_size(plain, &size);
    say(" %d %ld %ld %ld %ld", size, (long)lower, (long)extent, (long)true_lower,
        (long)true_extent);
    MPI_Type_create_resized(plain, 0, (true_lower + true_extent + 7) / 8 * 8, &datatype);
    MPI_Type_commit(&datatype);
    tell_contents(datatype);
    struct items out = items(datatype, count, step->salt, 1);
    struct items into = items(datatype, count, -1, 1);
    MPI_Pack_size(count, datatype, comm, &length);
    char box[length + 8];
    memset(box, 0xA5, sizeof box);
    MPI_Pack(out.memory, count, datatype, box, sizeof box, &position, comm);
    say(" %d", position);
    show(box + 4, position - 4);
    position = 4;
    MPI_Unpack(box, sizeof box, &position, into.memory, count, datatype, comm);
    say(" %d", position);
    show_items(into);
    if (!step->structs) { /* MPICH 5.0.2 crashes on some structs. */
        MPI_Aint bytes, at = 0;
        MPI_Pack_external_size("external32", count, datatype, &bytes);
        char outer[bytes + 1];
        into = items(datatype, count, -1, 1);
        MPI_Pack_external("external32", out.memory, count, datatype, outer, bytes, &at);
        say(" %ld %ld", (long)bytes, (long)at);
        show(outer, at);
        at = 0;
        MPI_Unpack_external("external32", outer, bytes, &at, into.memory, count, datatype);
        say(" %ld", (long)at);
        show_items(into);
    }
    free(out.memory);
    MPI_Type_free(&datatype);
    MPI_Type_free(&plain);
}
