// Objects with constructors, exceptions and streams of C++; an argument chooses a fault.
#include <mpi.h>

#include <cstring>
#include <iostream>
#include <stdexcept>
#include <vector>

struct Guard {
    Guard() { std::cout << "made\n"; }
    ~Guard() { std::cout << "destroyed\n"; }
} guard;

static std::vector<int> values{1, 2, 3};

static void store(volatile int *target) { *target = 1; }

static int deep(int n)
{
    volatile char room[100000];
    room[n % 100] = (char)n;
    return n > 0 ? deep(n + 1) + room[n % 100] : 0;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    values.push_back(rank);
    try {
        throw std::runtime_error("caught");
    } catch (const std::exception &error) {
        std::cout << "rank " << rank << " " << error.what() << " " << values.size() << std::endl;
    }
    const char *what = argc > 1 ? argv[1] : "";
    if (rank == 1 && std::strcmp(what, "store") == 0)
        store(reinterpret_cast<int *>(8));
    if (rank == 1 && std::strcmp(what, "deep") == 0)
        return deep(1);
    if (rank == 1 && std::strcmp(what, "throw") == 0)
        throw std::runtime_error("nobody catches it");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
