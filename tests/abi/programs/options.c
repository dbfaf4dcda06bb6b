/* Reads its words as several lists, with functions of getopt, and prints each step.

   The lists are separated by `;`. The first word of a list is the function and its option string. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef ALONE
#define MPI_Init(a, b) 0
#define MPI_Finalize() 0
#define MPI_Barrier(c) 0
#else
#include <mpi.h>
#endif

static int flag;
static const struct option LONGS[] = {
    {"name", required_argument, NULL, 'n'}, {"number", required_argument, NULL, 'N'},
    {"verbose", no_argument, &flag, 7},     {"very", no_argument, NULL, 'V'},
    {"maybe", optional_argument, NULL, 'm'}, {"a", no_argument, NULL, 1000}, {NULL, 0, NULL, 0},
};

static void list(int count, char **words)
{
    const char *names = words[0] + 1;
    char *first[64];
    int kind = words[0][0], code, which = -1;
    memcpy(first, words, count * sizeof *words);
    first[count] = NULL;
    first[0] = "program";
    optind = 0;
    opterr = kind != 'q';
    for (int i = 0; i < 40; i++) {
        which = -1;
        code = kind == 'l'   ? getopt_long(count, first, names, LONGS, &which)
               : kind == 'o' ? getopt_long_only(count, first, names, LONGS, &which)
                             : getopt(count, first, names);
        printf(" %d:%s:%d:%d", code, optarg ? optarg : "-", optind, which);
        if (code == '?' || code == ':')
            printf("?%d", optopt);
        if (code == -1)
            break;
        MPI_Barrier(MPI_COMM_WORLD); /* other ranks read their options meanwhile */
    }
    for (int i = 1; i < count; i++)
        printf(" %s", first[i]);
    printf(" flag %d\n", flag);
    fflush(stdout);
    flag = 0;
}

int main(int argc, char **argv)
{
    int begin = 1;
    MPI_Init(&argc, &argv);
    fprintf(stderr, "%s\n", program_invocation_short_name);
    for (int i = 1; i <= argc; i++)
        if (i == argc || strcmp(argv[i], ";") == 0) {
            list(i - begin, argv + begin);
            begin = i + 1;
        }
    MPI_Finalize();
    return 0;
}
