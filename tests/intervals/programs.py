"""The programs over which the intervals are checked.

Most are not made by the authors of pysmpi: the demonstrations of mpi4py and examples of other
repositories. The check looks for these in folders that --sources names, and leaves out those that
are not there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP / "tests" / "mpi4py_suite"))

from distribution import Unavailable, suite  # noqa: E402

MPI4PY = "demo of mpi4py"
APPS = "apps/"
STEERED = "tests/shadow/steered/"
PACKAGES = "tests/packages/programs/"
EXAMPLES = "jbornschein/mpi4py-examples"
CSC = "csc-training/hpc-python"


@dataclass(frozen=True)
class Program:
    """A program, its arguments, and its options if it is sampled.

    `source` says where it is from. `statuses` are exit statuses that wrong results cause.
    `call` is a call of a function of the program, which then is not a script. `without` is a
    package that the program is not to have. It runs in `folder`, relative to its own one.
    """

    name: str
    source: str
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    ranks: int = 4
    input: str = ""
    call: str = ""
    statuses: tuple[int, ...] = ()
    without: str = ""
    folder: str = ""


class Sources:
    """The folders of the programs."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = [Path(one) for one in folders]
        try:
            self.folders.append(suite().parent / "demo")
        except Unavailable as error:
            print(f"without the demos of mpi4py: {error}", file=sys.stderr)
        self.folders += [
            TOP / "apps",
            TOP / "tests" / "shadow" / "steered",
            TOP / "tests" / "packages" / "programs",
        ]

    def find(self, program: Program) -> str | None:
        """The path of a program."""
        file = program.name
        for folder in self.folders:
            if (folder / file).is_file():
                return str(folder / file)
        print(f"{program.name}: not found", file=sys.stderr)
        return None


def _apps(name: str, *arguments: str, **rest: object) -> Program:
    return Program(name, APPS, arguments, **rest)  # type: ignore[arg-type]


_FEW = "skip=1, loop=10, skip_large=1, loop_large=2, MAX_MSG_SIZE=16384"
_WINDOWS = "skip=1, loop=2, window_size=8, skip_large=1, loop_large=1, MAX_MSG_SIZE=4096"


def _osu(name: str, arguments: str) -> Program:
    return Program(f"osu_{name}.py", MPI4PY, call=f"osu_{name}({arguments})")


def _demo(name: str, **rest: object) -> Program:
    return Program(name, MPI4PY, **rest)  # type: ignore[arg-type]


PREDICTED = [
    _osu("latency", _FEW),
    _osu("bw", _WINDOWS),
    _osu("bibw", _WINDOWS),
    _osu("bcast", _FEW),
    _osu("allgather", _FEW),
    _osu("alltoall", _FEW),
    _osu("barrier", "skip=1, loop=100"),
    _demo("compute-pi/cpi-cco.py", input="4000\n0\n"),
    _demo("compute-pi/cpi-rma.py", input="4000\n0\n"),
    _demo("reductions/test_reductions.py"),
    _demo("nxtval/nxtval-mpi3.py"),
    Program("jacobi_conv.py", STEERED, ("60",)),
    Program("samplesort.py", STEERED, ("3000", "2")),
    Program("amg_levels.py", STEERED, ("100",)),
    Program("power_norms.py", STEERED, ("100",)),
    Program("adaptive_steps.py", STEERED, ("2000", "5e-3")),
    Program("error_bound.py", STEERED, ("1000", "2e-3")),
    Program("kmeans.py", STEERED, ("200", "4")),
    Program("graph_levels.py", STEERED, ("1000",)),
    Program("knapsack.py", STEERED, ("12",)),
    _apps("jacobi2d.py", "--size", "48", "--iterations", "8"),
    _apps("hpl.py", "--size", "32", "--block", "16"),
    _apps("nbody.py", "--bodies", "64", "--steps", "2"),
    _apps("dft.py", "--grid", "12", "--orbitals", "2", "--iterations", "1"),
    _apps("sweep3d.py", "--edge", "4", "--iterations", "1"),
    _apps("master_worker.py", "--limit", "40000", "--task", "4000"),
    _apps("pingpong.py", "--max", "65536", "--repeats", "2"),
]
AUTO = ("--sample", "auto")
WRONG = (1,)
FOLD = ("--fold", "64KiB")


def _named(place: str) -> tuple[str, str]:
    return ("--sample", place)


SAMPLED = [
    _demo(
        "mandelbrot/mandelbrot.py",
        options=_named("__main__:mandelbrot:by=none,iters=200"),
        without="matplotlib",
    ),
    _demo(
        "compute-pi/cpi-cco.py",
        input="200000\n" * 20 + "0\n",
        options=_named("__main__:comp_pi:by=type,iters=5"),
    ),
    _demo(
        "compute-pi/cpi-rma.py",
        input="200000\n" * 20 + "0\n",
        options=_named("__main__:comp_pi:by=type,iters=5"),
    ),
    Program(
        "mpi/heat-equation/solution/heat-p2p.py",
        CSC,
        (),
        _named("__main__:evolve:iters=20"),
        folder="..",
    ),
    Program("pymgrit_dahlquist.py", PACKAGES, (), _named("pymgrit.heat.heat_1d:Heat1D.step")),
    Program("07-matrix-vector-product", EXAMPLES, (), _named("numpy:inner:iters=4")),
    _apps("npb_mg.py", "--class", "W", options=_named("__main__:around:iters=5"), statuses=WRONG),
    _apps(
        "npb_cg.py",
        "--class",
        "W",
        options=_named("__main__:Solver.solve:scope=collective"),
        statuses=WRONG,
    ),
    _apps("npb_lu.py", options=_named("__main__:add_derivatives:iters=8"), statuses=WRONG),
    _apps("npb_ep.py", options=_named("__main__:batch:by=type,iters=10"), statuses=WRONG),
    _apps(
        "npb_is.py",
        "--class",
        "W",
        options=_named("__main__:Sorter.sort:scope=collective"),
        statuses=WRONG,
    ),
    _apps(
        "jacobi2d.py",
        "--size",
        "1024",
        "--iterations",
        "80",
        options=_named("__main__:Block.step:iters=10"),
        statuses=WRONG,
    ),
    _apps("nbody.py", options=_named("__main__:pull:iters=10"), statuses=WRONG),
    _apps(
        "dft.py",
        "--iterations",
        "12",
        options=_named("__main__:convolve:iters=10"),
        statuses=WRONG,
    ),
    _apps(
        "sweep3d.py",
        options=_named("__main__:Sweep.iterate:scope=collective,iters=2"),
        statuses=WRONG,
    ),
    _apps(
        "master_worker.py",
        "--limit",
        "800000",
        "--task",
        "4000",
        options=_named("__main__:count_primes:by=type,iters=10"),
        statuses=WRONG,
    ),
    Program(
        "samplesort.py", STEERED, ("100000", "20"), _named("__main__:local_sort:by=type,iters=6")
    ),
    Program("refined_mesh.py", STEERED, (), AUTO),
    Program("from_file.py", STEERED, (), _named("__main__:relax:iters=6")),
    Program("amg_levels.py", STEERED, ("500",), FOLD),
    _apps("npb_ft.py", options=FOLD, statuses=WRONG),
    _apps("npb_mg.py", "--class", "W", options=FOLD, statuses=WRONG),
    _apps("jacobi2d.py", "--size", "1024", "--iterations", "40", options=FOLD),
    _apps("nbody.py", "--bodies", "2048", "--steps", "8", options=FOLD, statuses=WRONG),
    _apps("npb_lu.py", options=FOLD, statuses=WRONG),
]
NOISY = [
    Program("jacobi_conv.py", STEERED, ("400",)),
    Program("samplesort.py", STEERED, ("20000", "2")),
    Program("amg_levels.py", STEERED, ("200",)),
    Program("drift.py", STEERED),
    Program("adaptive_steps.py", STEERED, ("2000", "1e-3")),
    Program("stealing.py", STEERED),
    Program("kmeans.py", STEERED, ("400",)),
    Program("knapsack.py", STEERED),
    Program("graph_levels.py", STEERED, ("2000",)),
    Program("power_norms.py", STEERED, ("200",)),
    Program("error_bound.py", STEERED, ("2000", "4e-4")),
    Program("refined_mesh.py", STEERED),
    _demo("mpi-ref-v1/ex-2.16.py"),
    _demo("compute-pi/cpi-cco.py", input="200\n" * 20 + "0\n"),
    _demo("compute-pi/cpi-rma.py", input="200\n" * 20 + "0\n"),
    _demo("profiling/ring.py"),
    _apps("jacobi2d.py", "--size", "64", "--iterations", "40"),
    _apps("npb_is.py"),
    _apps("npb_mg.py"),
    _apps("hpl.py", "--size", "128"),
    _apps("nbody.py", "--bodies", "64", "--steps", "8"),
    _apps("sweep3d.py", "--edge", "8"),
]
