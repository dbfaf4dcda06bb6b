"""Names of classes: one public name is one thing."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pysmpi"


# Words that say nothing about the thing they name.
EMPTY = {"Board", "Census", "Equipment", "Everyone", "Landing", "Part", "Surroundings", "Verdict"}


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


def test_no_two_public_classes_have_one_name():
    assert duplicates(PACKAGE) == {}


def test_names_of_classes_say_what_they_are():
    named = {name for path in PACKAGE.rglob("*.py") for name in public_classes(path)}
    assert not named & EMPTY


def test_duplicates_are_found(tmp_path):
    (tmp_path / "one.py").write_text("class Place: ...\nclass _Own: ...\n")
    (tmp_path / "other.py").write_text("class Place: ...\nclass _Own: ...\n")
    assert duplicates(tmp_path) == {"Place": ["one.py", "other.py"]}


# Participles and words of several meanings that name no value, and the packages without them.
VAGUE = {
    "begun", "date", "dates", "found", "given", "heard", "kept", "known", "made", "taken", "told",
    "way", "ways",
}  # fmt: skip
PLAIN = ("ranks", "checkers", "mpi/collective", "memory/transfer", "kernel")


def assigned(path):
    """The names of variables, parameters and attributes that a module assigns, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield getattr(node, "id", None) or node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


@pytest.mark.parametrize("package", PLAIN)
def test_names_of_variables_say_what_they_hold(package):
    """docs/contributing/words.md has the words; a name of a value is a noun."""
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for name, line in assigned(path)
        if name.lower().strip("_") in VAGUE
    ]
    assert not wrong
