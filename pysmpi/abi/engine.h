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
    PSM_FIRST, /* of the functions of MPI */
};

extern const psm_function psm_functions[];
extern const int psm_functions_count;
#define PSM_FUNCTIONS psm_functions_count

long long psm_call(int number, const long long *arguments, void *site);
double psm_real(int number, const long long *arguments, void *site);
