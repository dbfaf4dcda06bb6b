#include <stdint.h>

/* The functions of the library that programs are linked with, by number. */

typedef struct {
    const char *name;
    /* Of its arguments: i an integer, p a pointer, a capital letter a handle; 4 or 8 at the end
       stands for the bytes of its counts. */
    const char *kinds;
} psm_function;

enum {
    PSM_CLOCK, /* nanoseconds of a clock of the rank; negative if it is a real one */
    PSM_SLEEP,
    PSM_WRITE,
    PSM_READ,
    PSM_ABORT,
    PSM_GETPID,
    PSM_HOSTNAME,
    PSM_EXIT,
    PSM_LOAD, /* a library that a program opens */
    PSM_EXECUTE, /* of smpi.c */
    PSM_EXECUTE_FLOPS,
    PSM_SAMPLE,
    PSM_SAMPLED,
    PSM_SHARED_MALLOC,
    PSM_SHARED_FREE,
    PSM_SHARED_CALL,
    PSM_OPEN, /* the file that a rank loads in the place of a library */
    PSM_FIRST, /* of the functions of MPI */
};

extern const psm_function psm_functions[];
extern const int psm_functions_count;
#define PSM_FUNCTIONS psm_functions_count

long long psm_call(int number, const long long *arguments, void *site);
double psm_real(int number, const long long *arguments, void *site);

/* What the engine gives the libraries of other binary interfaces (see `family.h`). */

typedef long long psm_adapter(void *function, const long long *arguments);

#define PSM_SLOTS 4

typedef struct {
    long long (*call)(int number, const long long *arguments, void *site);
    double (*real)(int number, const long long *arguments, void *site);
    /* Memory of the program that runs, freed with it; NULL if code of Python calls. */
    void **(*slot)(int number);
    void *(*library)(void); /* of dlopen: the copy of the program that runs */
    /* What the engine takes for a function of the program: `adapter` calls `function` for it. */
    void *(*closure)(psm_adapter *adapter, void *function);
    void *unweighted, *empty; /* MPICH's constants */
} psm_core;

typedef struct {
    psm_adapter *adapter;
    void *function;
    uint32_t next; /* with the same hash */
} psm_closure;

/* The closure at an address, or NULL if it is a function. */
const psm_closure *psm_closure_at(void *address);
void *psm_closure_of(psm_adapter *adapter, void *function);
