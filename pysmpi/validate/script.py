"""The measuring program as one file for a machine without pysmpi, and jobs that start it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pprint import pformat
from typing import Any

from pysmpi.studies.applications import application

FORMAT, VERSION = "pysmpi-validate", 1
# Arguments of the programs by the class of their problems.
PROGRAMS: dict[str, dict[str, tuple[str, ...]]] = {
    "S": {"npb_ep": ("--class", "S"), "npb_cg": ("--class", "S"), "npb_ft": ("--class", "S"),
          "npb_mg": ("--class", "S"), "jacobi2d": ("--size", "256", "--iterations", "100")},
    "W": {"npb_ep": ("--class", "S"), "npb_cg": ("--class", "W"), "npb_ft": ("--class", "W"),
          "npb_mg": ("--class", "W"), "jacobi2d": ("--size", "1024", "--iterations", "100")},
    "A": {"npb_ep": ("--class", "W"), "npb_cg": ("--class", "A"), "npb_ft": ("--class", "A"),
          "npb_mg": ("--class", "A"), "jacobi2d": ("--size", "4096", "--iterations", "100")},
}  # fmt: skip
LARGEST = 1 << 22  # bytes of a message
ELEMENTS = 4_000_000  # of each of the three arrays of a rank: 32 MB
SECONDS = 120.0  # after this time a program is not repeated again
JOBS = ("slurm", "pbs", "mpiexec")

Layout = tuple[int, int]  # nodes, ranks on each


def settings(
    name: str = "W", largest: int = LARGEST, repeats: int = 5, elements: int = ELEMENTS
) -> dict[str, Any]:
    """The settings that a recording has in its first line."""
    return {
        "format": FORMAT, "version": VERSION, "class": name, "largest": largest,
        "repeats": repeats, "elements": elements, "seconds": SECONDS,
        "arguments": {key: list(value) for key, value in PROGRAMS[name].items()},
    }  # fmt: skip


def script(chosen: Mapping[str, Any]) -> str:
    """The text of the measuring program with its settings and the texts of its programs."""
    text = files("pysmpi.validate").joinpath("program.py").read_text("utf-8")
    sources = {name: _source(name) for name in ("npb", *chosen["arguments"])}
    for mark, value in (("SETTINGS", dict(chosen)), ("SOURCES", sources)):
        begin, found, end = re.split(rf"^({mark}: .*) = {{}}$", text, flags=re.MULTILINE)
        text = f"{begin}{found} = {pformat(value, width=96, sort_dicts=False)}{end}"
    return text


def _source(name: str) -> str:
    """The text of a program whose clock and helpers the measuring program gives."""
    text = application(f"{name}.py").read_text("utf-8").replace("import npb\n", "")
    assert name == "npb" or text.count("MPI.Wtime()") == 2, name  # the ends of the measured part
    return text.replace("MPI.Wtime()", "wtime()")


def layouts(nodes: int, cores: int) -> list[Layout]:
    """1, 2, 4, ... and all cores of a node; 2, 4, ... and all nodes, with one rank and with all."""
    counts = [1 << k for k in range(cores.bit_length()) if 1 << k < cores] + [cores]
    found = [(1, count) for count in counts]
    for number in [1 << k for k in range(1, nodes.bit_length()) if 1 << k < nodes] + [nodes]:
        if number > 1:
            found += [(number, 1), (number, cores)]
    return list(dict.fromkeys(found))


def job(kind: str, name: str, python: str, recording: str, chosen: Sequence[Layout]) -> str:
    """The text of a job of a batch system that measures all layouts, one after the other."""
    nodes = max(number for number, _ in chosen)
    cores = max(count for _, count in chosen)
    head = {
        "slurm": f"#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node={cores}\n"
        "#SBATCH --exclusive\n#SBATCH --time=01:00:00\n",
        "pbs": f"#PBS -l select={nodes}:ncpus={cores}:mpiprocs={cores}\n#PBS -l walltime=01:00:00\n"
        'cd "$PBS_O_WORKDIR"\n',
        "mpiexec": "",
    }[kind]
    # Hydra and Open MPI read the nodes of the job; PBS names each once for each of its ranks.
    start = {
        "slurm": 'srun --nodes="$1" --ntasks="$(($1 * $2))" --ntasks-per-node="$2" '
        "--cpu-bind=cores",
        "pbs": 'sort -u "$PBS_NODEFILE" | head -n "$1" > hosts.$$\n'
        '  mpiexec -n "$(($1 * $2))" -ppn "$2" -f hosts.$$',
        "mpiexec": 'mpiexec -n "$(($1 * $2))" -ppn "$2"',
    }[kind]
    use = {"slurm": "sbatch", "pbs": "qsub", "mpiexec": "bash"}[kind]
    note = "# -ppn and -f are those of MPICH and Intel MPI; Open MPI: --npernode and --hostfile.\n"
    ppn = "" if kind == "slurm" else note
    calls = "\n".join(f"measure {number} {count}" for number, count in chosen)
    return (
        f"#!/bin/bash\n{head}"
        f"# Start it with: {use}. Load the modules of MPI and Python here.\n{ppn}"
        f"measure() {{ # nodes, ranks on each\n  {start} \\\n    {python} {name} {recording} ||\n"
        f'    echo "$1 nodes with $2 ranks each failed" >&2\n}}\n{calls}\n'
    )
