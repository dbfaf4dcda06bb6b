/* The steps of random programs in C: those of tests/programs/random_program.py. */
#ifndef STEPS_H
#define STEPS_H
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum element { I2, I4, U8, F8, ELEMENTS };

/* The draws of a step; ranks, roots and counts are taken modulo the size of the communicator. */
struct step {
    const char *what, *kind, *form, *name, *send, *receive, *wait, *way, *access, *epoch;
    int a, b, count, salt, in_place, any, operator, structs;
    int element; /* the one predefined datatype that `type` consists of; -1: several, or not asked */
    int counts[4], number_of_counts;
    enum element dtype;
    MPI_Datatype (*type)(void);
};

/* Memory for some items of a datatype; bytes around them show stray writes. */
struct items {
    unsigned char *memory;
    size_t size;
};

extern const char *const OWN, *const MINLOC, *const MAXLOC;
MPI_Datatype element(enum element which);
size_t width(enum element which);
int is(const char *text, const char *other);
int modulo(int number, int size);
int rank_in(MPI_Comm comm);
int size_of(MPI_Comm comm);

/* Observations of this rank. */
void say(const char *format, ...);
void show(const void *data, size_t size);
void show_items(struct items items);

struct items items(MPI_Datatype datatype, int count, int salt, int blocks); /* no salt: -1 */
void numbers(enum element which, void *data, int count, int salt);
void fill(enum element which, void *data, int count);
size_t thing(const char *kind, int salt, char *bytes); /* at most THING bytes */
#define THING 4096

MPI_Comm communicator(MPI_Comm parent, const char *kind, int a, int b);
void describe(MPI_Comm comm, MPI_Comm parent);
void finish(MPI_Request *request);

typedef void step_function(MPI_Comm comm, const struct step *step);
step_function pair, shift, fan, objects, packing; /* messages.c */
step_function bcast, regular, varying, reduction, object_collective, neighbours; /* collectives.c */
step_function one_sided, shared_window, file, partitioned, groups, bridge, attributes, from_group,
    large; /* chapters.c */

/* The program that was translated. */
typedef void program_function(void);
extern program_function *const PROGRAMS[];
extern const int NUMBER_OF_PROGRAMS;
void begin_step(int number, const char *what);
#endif
