"""YAML documents: dumped, loaded, with tags and anchors, exchanged between ranks."""

from __future__ import annotations

import datetime

import yaml
from mpi4py import MPI

comm = MPI.COMM_WORLD


class Range(yaml.YAMLObject):
    yaml_tag = "!range"
    yaml_loader = [yaml.SafeLoader, yaml.CSafeLoader]
    yaml_dumper = yaml.SafeDumper

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high


yaml.add_constructor(
    "!rank", lambda loader, node: comm.rank + int(node.value), Loader=yaml.SafeLoader
)
shared = [1, 2, comm.rank]
data = {
    "range": Range(comm.rank, 10), "a": shared, "b": shared,
    "when": datetime.date(2020, 1, 1 + comm.rank),
    "text": "line\nother: x\n", "numbers": [0.1 * comm.rank, 1e30, float("inf"), None, True],
}  # fmt: skip
text = yaml.safe_dump(data)
print(comm.rank, text.splitlines())
for loader in (yaml.SafeLoader, yaml.CSafeLoader):
    loaded = [yaml.load(one, loader) for one in comm.allgather(text)]
    print(comm.rank, [(one["range"].low, one["a"][2], one["when"].day) for one in loaded])
    print(comm.rank, loaded[comm.rank]["a"] is loaded[comm.rank]["b"])
print(comm.rank, yaml.safe_load("x: !rank 5\ny: &q {k: 1}\nz: {<<: *q, m: 0x1F}"))
for bad in ("a: [1, 2", "a: b: c", "!unknown 3"):
    try:
        yaml.safe_load(bad)
    except yaml.YAMLError as error:
        print(comm.rank, type(error).__name__, error.problem_mark.line, error.problem_mark.column)
print(comm.rank, [type(one).__name__ for one in yaml.parse(text)][:6], len(list(yaml.scan(text))))
