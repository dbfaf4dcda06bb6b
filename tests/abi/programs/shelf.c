/* A library of a program, with variables of its own, that calls MPI. */

#include <mpi.h>
#include <stdio.h>

int books = 7;          /* the program has a copy of it */
static int calls;       /* of `lend` */
int *const where = &books;

int price(int);         /* of the program, which replaces the one below */

__attribute__((constructor)) static void open_shelf(void) { books++; }

__attribute__((destructor)) static void close_shelf(void)
{
    printf("closed with %d books after %d calls\n", books, calls);
}

__attribute__((weak)) int price(int value) { return -value; }

int lend(int to, int from)
{
    int mine = price(books), other = 0;
    calls++;
    MPI_Sendrecv(&mine, 1, MPI_INT, to, 3, &other, 1, MPI_INT, from, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return other;
}
