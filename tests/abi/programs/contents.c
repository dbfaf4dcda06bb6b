/* The numbers of integers, addresses, large counts and datatypes that made each datatype. */
#include <mpi.h>
#include <stdio.h>

static void say(const char *name, MPI_Datatype datatype)
{
    MPI_Count many, places, counts, types;
    int kind, integers = 0, addresses = 0, parts = 0;
    MPI_Type_get_envelope_c(datatype, &many, &places, &counts, &types, &kind);
    if (counts == 0)
        MPI_Type_get_envelope(datatype, &integers, &addresses, &parts, &kind);
    else {
        integers = many;
        addresses = places;
        parts = types;
    }
    int numbers[integers + 1];
    MPI_Aint bytes[addresses + 1];
    MPI_Count large[counts + 1];
    MPI_Datatype inner[parts + 1];
    if (counts == 0)
        MPI_Type_get_contents(datatype, integers, addresses, parts, numbers, bytes, inner);
    else
        MPI_Type_get_contents_c(datatype, many, places, counts, types, numbers, bytes, large,
                                inner);
    printf("%s %d %d %d %d:", name, (int)many, (int)places, (int)counts, (int)types);
    for (int i = 0; i < integers; i++)
        printf(" %d", numbers[i] == MPI_ORDER_C ? -1 : numbers[i]);
    printf(" |");
    for (int i = 0; i < addresses; i++)
        printf(" %ld", (long)bytes[i]);
    printf(" |");
    for (int i = 0; i < counts; i++)
        printf(" %ld", (long)large[i]);
    printf("\n");
    MPI_Type_free(&datatype);
}

int main(int argc, char **argv)
{
    int two[] = {2, 3}, at[] = {4, 9};
    MPI_Aint bytes[] = {16, 40};
    MPI_Count two_c[] = {2, 3}, at_c[] = {4, 9}, bytes_c[] = {16, 40};
    MPI_Datatype d, types[] = {MPI_INT, MPI_INT};
    MPI_Init(&argc, &argv);
#define SAY(Name, ...) MPI_Type_##Name(__VA_ARGS__, &d), say(#Name, d)
    SAY(dup, MPI_INT);
    SAY(contiguous, 3, MPI_INT);
    SAY(vector, 3, 2, 5, MPI_INT);
    SAY(create_hvector, 3, 2, 24, MPI_INT);
    SAY(indexed, 2, two, at, MPI_INT);
    SAY(create_hindexed, 2, two, bytes, MPI_INT);
    SAY(create_indexed_block, 2, 2, at, MPI_INT);
    SAY(create_hindexed_block, 2, 2, bytes, MPI_INT);
    SAY(create_struct, 2, two, bytes, types);
    SAY(create_resized, MPI_INT, -8, 24);
    SAY(create_subarray, 1, at, two, two, MPI_ORDER_C, MPI_INT);
    SAY(contiguous_c, 3, MPI_INT);
    SAY(vector_c, 3, 2, 5, MPI_INT);
    SAY(create_hvector_c, 3, 2, 24, MPI_INT);
    SAY(indexed_c, 2, two_c, at_c, MPI_INT);
    SAY(create_hindexed_c, 2, two_c, bytes_c, MPI_INT);
    SAY(create_indexed_block_c, 2, 2, at_c, MPI_INT);
    SAY(create_hindexed_block_c, 2, 2, bytes_c, MPI_INT);
    SAY(create_struct_c, 2, two_c, bytes_c, types);
    SAY(create_resized_c, MPI_INT, -8, 24);
    SAY(create_subarray_c, 1, at_c, two_c, two_c, MPI_ORDER_C, MPI_INT);
    MPI_Finalize();
    return 0;
}
