/* Many calls with small arguments, on two ranks: prints each condition that does not hold. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, other;

#define EXPECT(condition)                                                                        \
    do {                                                                                         \
        if (!(condition))                                                                        \
            printf("rank %d: line %d does not hold: %s\n", rank, __LINE__, #condition);          \
    } while (0)

/* The elements 0, 2, 4 of six integers. */
static MPI_Datatype every_second(void)
{
    MPI_Datatype type;
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void sends(void)
{
    typedef int send(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    static send *const begins[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    static send *const inits[] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
    MPI_Datatype type = every_second();
    void *space = malloc(10000), *given;
    int size, i;
    MPI_Buffer_attach(space, 10000);
    for (i = 0; i < 8; i++) {
        int data[6] = {rank, -1, rank + 10, -1, rank + 20, -1}, into[6] = {9, 9, 9, 9, 9, 9};
        MPI_Request requests[2];
        MPI_Status states[2];
        if (i < 4) {
            MPI_Irecv(into, 1, type, other, 40 + i, MPI_COMM_WORLD, requests);
            MPI_Barrier(MPI_COMM_WORLD);
            begins[i](data, 1, type, other, 40 + i, MPI_COMM_WORLD, requests + 1);
        } else {
            MPI_Recv_init(into, 1, type, other, 40 + i, MPI_COMM_WORLD, requests);
            inits[i - 4](data, 1, type, other, 40 + i, MPI_COMM_WORLD, requests + 1);
            MPI_Start(requests);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Startall(1, requests + 1);
        }
        MPI_Waitall(2, requests, states);
        EXPECT(into[0] == other && into[2] == other + 10 && into[4] == other + 20);
        EXPECT(into[1] == 9 && into[3] == 9 && into[5] == 9);
        EXPECT(states[0].MPI_SOURCE == other && states[0].MPI_TAG == 40 + i);
        MPI_Get_count(states, type, &size);
        EXPECT(size == 1);
        MPI_Get_elements(states, type, &size);
        EXPECT(size == 3);
        if (i >= 4) {
            MPI_Request_free(requests);
            MPI_Request_free(requests + 1);
        }
        EXPECT(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    }
    MPI_Buffer_detach(&given, &size);
    EXPECT(given == space && size == 10000);
    free(space);
    MPI_Type_free(&type);
    EXPECT(type == MPI_DATATYPE_NULL);
}

static void receives(void)
{
    int value = 50 + rank, into = 0, flag = 0, index = -1, many = 0, indices[2], count;
    MPI_Status status, states[2];
    MPI_Message message;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Sendrecv(&value, 1, MPI_INT, other, 1, &into, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &status);
    EXPECT(into == 50 + other && status.MPI_SOURCE == other && status.MPI_TAG == 1);
    MPI_Sendrecv_replace(&into, 1, MPI_INT, other, 2, other, 2, MPI_COMM_WORLD, &status);
    EXPECT(into == 50 + rank && status.MPI_TAG == 2);
    MPI_Isend(&value, 1, MPI_INT, other, 3, MPI_COMM_WORLD, requests);
    MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_SHORT, &count);
    EXPECT(status.MPI_SOURCE == other && count == 2);
    while (!flag)
        MPI_Improbe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
    EXPECT(status.MPI_TAG == 3 && message != MPI_MESSAGE_NULL);
    MPI_Imrecv(&into, 1, MPI_INT, &message, requests + 1);
    EXPECT(message == MPI_MESSAGE_NULL);
    while (many < 2) {
        MPI_Waitsome(2, requests, &count, indices, states);
        many += count;
    }
    EXPECT(into == 50 + other);
    MPI_Waitany(2, requests, &index, &status);
    EXPECT(index == MPI_UNDEFINED);
    MPI_Testall(2, requests, &flag, states);
    EXPECT(flag == 1);
    MPI_Isend(&value, 1, MPI_INT, other, 4, MPI_COMM_WORLD, requests);
    MPI_Mprobe(other, 4, MPI_COMM_WORLD, &message, &status);
    into = 0;
    MPI_Mrecv(&into, 1, MPI_INT, &message, &status);
    EXPECT(into == 50 + other && status.MPI_TAG == 4);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Irecv(&into, 1, MPI_INT, other, 99, MPI_COMM_WORLD, requests);
    MPI_Cancel(requests);
    MPI_Wait(requests, &status);
    MPI_Test_cancelled(&status, &flag);
    EXPECT(flag == 1);
    MPI_Status_set_cancelled(&status, 0);
    MPI_Test_cancelled(&status, &flag);
    EXPECT(flag == 0);
    MPI_Status_set_elements(&status, MPI_INT, 7);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT(count == 7);
    MPI_Status_set_source(&status, 3);
    MPI_Status_set_tag(&status, 4);
    MPI_Status_set_error(&status, MPI_ERR_TAG);
    EXPECT(status.MPI_SOURCE == 3 && status.MPI_TAG == 4 && status.MPI_ERROR == MPI_ERR_TAG);
    MPI_Status_get_source(&status, &count);
    MPI_Status_get_tag(&status, &index);
    MPI_Status_get_error(&status, &many);
    EXPECT(count == 3 && index == 4 && many == MPI_ERR_TAG);
}

static void types(void)
{
    static const int lengths[] = {2, 1}, indices[] = {3, 0}, extents[] = {4, 4}, parts[] = {2, 1};
    static const int starts[] = {1, 2};
    static const MPI_Aint places[] = {12, 0};
    MPI_Datatype pair[] = {MPI_INT, MPI_INT}, type, copy;
    MPI_Aint low, extent;
    int data[16], into[16], packed[4], size, position, i, kind;
    char name[MPI_MAX_OBJECT_NAME];
    for (i = 0; i < 16; i++)
        data[i] = 100 * rank + i;
    for (kind = 0; kind < 6; kind++) {
        static const int wanted[][3] = {{3, 4, 0}, {3, 4, 0}, {3, 4, 0}, {3, 4, 0}, {3, 0, -1}, {6, 10, -1}};
        if (kind == 0)
            MPI_Type_indexed(2, lengths, indices, MPI_INT, &type);
        if (kind == 1)
            MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
        if (kind == 2)
            MPI_Type_create_struct(2, lengths, places, pair, &type);
        if (kind == 3) {
            MPI_Type_indexed(2, lengths, indices, MPI_INT, &copy);
            MPI_Type_dup(copy, &type);
            MPI_Type_free(&copy);
        }
        if (kind == 4)
            MPI_Type_create_indexed_block(2, 1, indices, MPI_INT, &type);
        if (kind == 5)
            MPI_Type_create_subarray(2, extents, parts, starts, MPI_ORDER_C, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Type_size(type, &size);
        position = 0;
        MPI_Pack(data, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
        EXPECT(position == size);
        for (i = 0; 4 * i < size; i++)
            EXPECT(packed[i] == 100 * rank + wanted[kind][i]);
        memset(into, 0, sizeof into);
        position = 0;
        MPI_Unpack(packed, sizeof packed, &position, into, 1, type, MPI_COMM_WORLD);
        EXPECT(position == size && into[wanted[kind][0]] == data[wanted[kind][0]]);
        MPI_Type_get_true_extent(type, &low, &extent);
        EXPECT(low == (kind == 5 ? 24 : 0) && extent == (kind == 4 ? 16 : 20));
        MPI_Type_free(&type);
    }
    MPI_Type_create_resized(MPI_INT, -4, 24, &type);
    MPI_Type_get_extent(type, &low, &extent);
    EXPECT(low == -4 && extent == 24);
    MPI_Type_set_name(type, "wide");
    MPI_Type_get_name(type, name, &size);
    EXPECT(size == 4 && !strcmp(name, "wide"));
    MPI_Type_free(&type);
    MPI_Pack_size(3, MPI_DOUBLE, MPI_COMM_WORLD, &size);
    EXPECT(size >= 24);
}

static void groups(void)
{
    static const int first[] = {1}, ranges[][3] = {{1, 0, -1}};
    MPI_Group world, reversed, one, both;
    MPI_Comm comm, part;
    int size, result, ranks[2] = {0, 1}, others[2];
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, (int(*)[3])ranges, &reversed);
    MPI_Group_translate_ranks(world, 2, ranks, reversed, others);
    EXPECT(others[0] == 1 && others[1] == 0);
    MPI_Group_compare(world, reversed, &result);
    EXPECT(result == MPI_SIMILAR);
    MPI_Group_incl(world, 1, first, &one);
    MPI_Group_rank(one, &result);
    EXPECT(result == (rank ? 0 : MPI_UNDEFINED));
    MPI_Group_union(one, world, &both);
    MPI_Group_translate_ranks(both, 2, ranks, world, others);
    EXPECT(others[0] == 1 && others[1] == 0);
    MPI_Group_free(&both);
    MPI_Group_difference(world, one, &both);
    MPI_Group_size(both, &size);
    EXPECT(size == 1);
    MPI_Group_free(&both);
    MPI_Group_excl(world, 1, first, &both);
    MPI_Group_rank(both, &result);
    EXPECT(result == (rank ? MPI_UNDEFINED : 0));
    MPI_Comm_create(MPI_COMM_WORLD, reversed, &comm);
    MPI_Comm_rank(comm, &result);
    EXPECT(result == 1 - rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 5, &part);
    MPI_Comm_size(part, &size);
    EXPECT(size == 1);
    MPI_Comm_compare(part, comm, &result);
    EXPECT(result == MPI_UNEQUAL);
    MPI_Comm_free(&part);
    MPI_Comm_free(&comm);
    MPI_Group_free(&both);
    MPI_Group_free(&one);
    MPI_Group_free(&reversed);
    MPI_Group_free(&world);
}

static void collectives(void)
{
    static const int counts[] = {1, 2}, places[] = {3, 0};
    int mine[] = {10 * (rank + 1), 10 * (rank + 1) + 1}, all[4], i, n, size = rank + 1;
    for (i = 0; i < 2; i++) {
        MPI_Request request = MPI_REQUEST_NULL;
        memset(all, 0, sizeof all);
        if (i)
            MPI_Iallgatherv(mine, size, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD, &request);
        else
            MPI_Allgatherv(mine, size, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(all[3] == 10 && all[0] == 20 && all[1] == 21 && all[2] == 0);
        if (i)
            MPI_Igatherv(mine, size, MPI_INT, all, counts, places, MPI_INT, 1, MPI_COMM_WORLD, &request);
        else
            MPI_Gatherv(mine, size, MPI_INT, all, counts, places, MPI_INT, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int from[] = {7, 8, 0, 9}, into[2] = {0, 0};
        if (i)
            MPI_Iscatterv(from, counts, places, MPI_INT, into, size, MPI_INT, 0, MPI_COMM_WORLD, &request);
        else
            MPI_Scatterv(from, counts, places, MPI_INT, into, size, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(rank ? into[0] == 7 && into[1] == 8 : into[0] == 9 && into[1] == 0);
        if (i)
            MPI_Ialltoall(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
        else
            MPI_Alltoall(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(all[0] == 10 + rank && all[1] == 20 + rank);
        if (i)
            MPI_Iscan(mine, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        else
            MPI_Scan(mine, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(n == (rank ? 30 : 10));
        n = -1;
        MPI_Exscan(mine, &n, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        EXPECT(n == (rank ? 10 : -1));
        MPI_Reduce_scatter_block(mine, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(n == (rank ? 32 : 30));
        MPI_Reduce_scatter(from, into, counts, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        EXPECT(rank ? into[0] == 8 && into[1] == 0 : into[0] == 7);
        MPI_Reduce(mine, all, 2, MPI_INT, MPI_PROD, 1, MPI_COMM_WORLD);
        EXPECT(!rank || (all[0] == 200 && all[1] == 231));
    }
    int left[] = {1, 2}, right[] = {5, 5};
    MPI_Reduce_local(left, right, 2, MPI_INT, MPI_SUM);
    EXPECT(right[0] == 6 && right[1] == 7);
}

static void topologies(void)
{
    static const int periodic[] = {1};
    int dims[] = {0, 0}, at[1], result, from, to, three[2];
    MPI_Comm ring;
    MPI_Dims_create(6, 2, dims);
    EXPECT(dims[0] == 3 && dims[1] == 2);
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){2}, periodic, 0, &ring);
    MPI_Cart_coords(ring, rank, 1, at);
    MPI_Cart_rank(ring, (int[]){at[0] + 1}, &result);
    MPI_Cart_shift(ring, 0, 1, &from, &to);
    EXPECT(at[0] == rank && result == other && from == other && to == other);
    MPI_Cartdim_get(ring, &result);
    MPI_Topo_test(ring, &from);
    EXPECT(result == 1 && from == MPI_CART);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, three, 1, MPI_INT, ring);
    EXPECT(three[0] == other && three[1] == other);
    MPI_Comm_free(&ring);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, &(int){7}, 1, &other, &(int){8},
                                   MPI_INFO_NULL, 0, &ring);
    int sources, targets, weighted, source, target, weights[2];
    MPI_Dist_graph_neighbors_count(ring, &sources, &targets, &weighted);
    MPI_Dist_graph_neighbors(ring, 1, &source, weights, 1, &target, weights + 1);
    EXPECT(sources == 1 && targets == 1 && weighted && source == other && target == other);
    EXPECT(weights[0] == 7 && weights[1] == 8);
    MPI_Comm_free(&ring);
}

static void windows(void)
{
    int *memory, value = 5 + rank, before = 0, expected = 100;
    MPI_Win window;
    MPI_Win_allocate(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memory[0] = memory[1] = memory[2] = 100, memory[3] = 0;
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_INT, other, 3, 1, MPI_INT, window);
    MPI_Accumulate(&value, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    EXPECT(memory[3] == 5 + other && memory[0] == 105 + other);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window);
    MPI_Fetch_and_op(&value, &before, MPI_INT, other, 1, MPI_SUM, window);
    MPI_Win_flush(other, window);
    EXPECT(before == 100);
    MPI_Compare_and_swap(&value, &expected, &before, MPI_INT, other, 2, window);
    MPI_Win_unlock(other, window);
    EXPECT(before == 100);
    MPI_Win_fence(0, window);
    EXPECT(memory[1] == 105 + other && memory[2] == 5 + other);
    MPI_Get(&before, 1, MPI_INT, other, 3, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    EXPECT(before == 5 + rank);
    MPI_Win_free(&window);
    EXPECT(window == MPI_WIN_NULL);
}

static void files(const char *name)
{
    int value[2] = {3 + rank, 30 + rank}, into[2] = {0, 0}, count;
    MPI_Offset at, size;
    MPI_Status status;
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 4 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 2 * rank, value, 2, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT(count == 2);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 3 * other, into, 2, MPI_INT, &status);
    EXPECT(into[0] == 3 + other && into[1] == 30 + other);
    MPI_File_seek(file, 2, MPI_SEEK_SET);
    MPI_File_get_position(file, &at);
    MPI_File_get_size(file, &size);
    EXPECT(at == 2 && size == 20);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&file);
    if (!rank)
        MPI_File_delete(name, MPI_INFO_NULL);
}

static void the_rest(void)
{
    int number, code, key, length, there;
    char text[MPI_MAX_ERROR_STRING], value[20];
    MPI_Info info, copy;
    void *seen;
    MPI_Info_create(&info);
    MPI_Info_set(info, "first", "one");
    MPI_Info_set(info, "second", "two");
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "first");
    MPI_Info_get_nkeys(info, &number);
    MPI_Info_get(copy, "first", 19, value, &there);
    EXPECT(number == 1 && there && !strcmp(value, "one"));
    MPI_Info_get_nthkey(info, 0, text);
    EXPECT(!strcmp(text, "second"));
    MPI_Info_get_valuelen(info, "second", &length, &there);
    EXPECT(length == 3 && there);
    MPI_Info_free(&info);
    MPI_Info_free(&copy);
    MPI_Add_error_class(&number);
    MPI_Add_error_code(number, &code);
    MPI_Add_error_string(code, "made up");
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &there);
    EXPECT(!strcmp(text, "made up") && length == 7 && there == number);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_set_attr(MPI_INT, key, &number);
    MPI_Type_get_attr(MPI_INT, key, &seen, &there);
    EXPECT(there && seen == &number);
    MPI_Type_delete_attr(MPI_INT, key);
    MPI_Type_get_attr(MPI_INT, key, &seen, &there);
    EXPECT(!there);
    MPI_Type_free_keyval(&key);
    EXPECT(key == MPI_KEYVAL_INVALID);
    MPI_Initialized(&there);
    MPI_Finalized(&number);
    EXPECT(there && !number);
}

/* Edges with no weights, and with no edges to weigh. */
static void graphs(void)
{
    MPI_Comm graph;
    int degrees[2], weighted, peers[2], weights[2] = {7, 7};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1, &other,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &degrees[0], &degrees[1], &weighted);
    EXPECT(degrees[0] == 1 && degrees[1] == 1 && !weighted);
    MPI_Dist_graph_neighbors(graph, 1, peers, MPI_UNWEIGHTED, 1, peers + 1, MPI_UNWEIGHTED);
    EXPECT(peers[0] == other && peers[1] == other);
    MPI_Comm_free(&graph);
    /* Rank 0 alone has an edge, with a weight. */
    const int *none = MPI_WEIGHTS_EMPTY, *own = rank == 0 ? weights : none;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank, &other, rank ? weights : none, 1 - rank,
                                   &other, own, MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &degrees[0], &degrees[1], &weighted);
    EXPECT(degrees[0] == rank && degrees[1] == 1 - rank && weighted);
    MPI_Comm_free(&graph);
}

/* Two programs start: each is this one, with the words of its own list. */
static void spawned(char *program)
{
    static char *first[] = {"child", "1", NULL}, *second[] = {"child", "2", "3", NULL};
    char *programs[] = {program, program}, **lists[] = {first, second};
    int ranks[] = {1, 2}, codes[] = {9, 9, 9}, words = 0;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm children;
    MPI_Comm_spawn_multiple(2, programs, lists, ranks, infos, 0, MPI_COMM_WORLD, &children, codes);
    EXPECT(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == MPI_SUCCESS);
    MPI_Reduce(NULL, &words, 1, MPI_INT, MPI_SUM, rank ? MPI_PROC_NULL : MPI_ROOT, children);
    EXPECT(words == (rank ? 0 : 3 + 4 + 4));
    MPI_Comm_disconnect(&children);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Reduce(&argc, NULL, 1, MPI_INT, MPI_SUM, 0, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    sends();
    receives();
    types();
    groups();
    collectives();
    topologies();
    graphs();
    windows();
    files(argv[1]);
    the_rest();
    spawned(argv[0]);
    printf("rank %d: end\n", rank);
    MPI_Finalize();
    return 0;
}
