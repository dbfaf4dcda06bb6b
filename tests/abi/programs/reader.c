/* Reads options, and uses a library and a plug-in that call MPI. */

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
extern int books;
extern int *const where;
int lend(int to, int from);

int price(int value) { return 2 * value; }

int main(int argc, char **argv)
{
    int rank, size, option, number = 0;
    const char *path = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while ((option = getopt(argc, argv, "n:p:")) != -1) {
        if (option == 'n')
            number = atoi(optarg);
        else
            path = optarg;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    books += rank;
    const int got = lend(next, before);
    char text[16];
    sprintf(text, "%d", rank);
    setenv("READER", text, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    char **entry = environ;
    while (*entry != NULL && strncmp(*entry, "READER=", 7) != 0)
        entry++;
    printf("rank %d: -n %d, word %s at %d, got %d, same %d, variable %s\n", rank, number,
           argv[optind], optind, got, where == &books, *entry != NULL ? *entry : "none");
    if (path != NULL) {
        void *library = dlopen(path, RTLD_NOW);
        if (library == NULL) {
            printf("%s\n", dlerror());
            return 1;
        }
        int (*use)(int, int) = (int (*)(int, int))dlsym(library, "use");
        printf("rank %d: plug-in %d, again %d\n", rank, use(next, before),
               dlopen(path, RTLD_NOW) == library);
        dlclose(library);
    }
    MPI_Finalize();
    return 0;
}
