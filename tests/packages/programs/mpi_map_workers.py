"""Functions that mpi_map evaluates in processes that it spawns."""

import mpi_map
import numpy as np


def add(x, params=None):
    return x + 2.0


def set_matrix(A):
    return None, A


class Operator:
    def dot(self, x, A):
        return np.dot(A, x.T).T


if __name__ == "__main__":
    matrix = np.arange(25.0).reshape(5, 5)
    pool = mpi_map.MPI_Pool()
    pool.start(3, {("numpy", "np")})
    try:
        pool.eval(set_matrix, obj_bcast={"A": matrix}, dmem_key_out_list=["A"])
        for n in (10, 33):
            points = np.random.RandomState(n).randn(n, 5)
            split = pool.split_data([points], ["x"])
            parts = pool.eval("dot", obj_scatter=split, dmem_key_in_list=["A"],
                              dmem_arg_in_list=["A"], obj=Operator())  # fmt: skip
            found = np.concatenate(parts, axis=0)
            print(n, len(parts), np.allclose(found, matrix.dot(points.T).T), found.sum())
    finally:
        pool.stop()
