/* Calls with wrong arguments, and whether each is an error. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char memory[1 << 16], results[1 << 16];
static int handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
    handled = 1;
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    int code;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
#define CALL(name, call)                                                                          \
    memset(results, 0, sizeof results);                                                           \
    handled = 0;                                                                                  \
    code = call;                                                                                  \
    printf("%s: %s\n", name, code || handled ? "error" : "success");
#include "calls.h"
    fflush(stdout);
    _Exit(0);
}
