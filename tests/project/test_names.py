"""Names of classes: one public name is one thing."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pysmpi"


# Names of mpi4py's public classes, which cannot change, and of compiled classes below MPI, which
# `mpi/` imports under another name (`KernelRequest`) or not at all.
KNOWN = {
    "Group": ["mpi/groups/groups.py", "runtime/process/exchange.py"],
    "Request": ["kernel/requests.py", "mpi/point_to_point/requests.py"],
}


def public_classes(path):
    """The names of the public classes at the top of a module."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def duplicates(root):
    """The public classes whose name stands for several, with the modules that define them."""
    homes = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        for name in public_classes(path):
            homes[name].append(str(path.relative_to(root)))
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_no_other_two_public_classes_have_one_name():
    assert duplicates(PACKAGE) == KNOWN


def test_duplicates_are_found(tmp_path):
    (tmp_path / "one.py").write_text("class Place: ...\nclass _Own: ...\n")
    (tmp_path / "other.py").write_text("class Place: ...\nclass _Own: ...\n")
    assert duplicates(tmp_path) == {"Place": ["one.py", "other.py"]}
