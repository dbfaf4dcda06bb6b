"""Compiled classes that are made by Python code, too."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def compiled_modules() -> dict[Path, ast.Module]:
    """The modules that setup.py compiles."""
    rooms = next(
        node.value
        for node in ast.parse((ROOT / "setup.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ROOMS"
    )
    patterns = eval(compile(ast.Expression(rooms), "setup.py", "eval"))
    return {
        path: ast.parse(path.read_text()) for pattern in patterns for path in ROOT.glob(pattern)
    }


def compiled_classes() -> dict[str, ast.ClassDef]:
    """The classes of the modules that setup.py compiles, by name."""
    return {
        node.name: node
        for module in compiled_modules().values()
        for node in module.body
        if isinstance(node, ast.ClassDef)
    }


def is_open(node: ast.ClassDef) -> bool:
    """Whether interpreted classes may derive from it."""
    return any("allow_interpreted_subclasses=True" in ast.unparse(d) for d in node.decorator_list)


def test_no_class_inherits_the_initialization_of_an_open_class_and_is_closed() -> None:
    # mypyc would run `__init__` twice for a call from Python, and leak the first attributes.
    classes = compiled_classes()

    def inherits_from_open(node: ast.ClassDef) -> bool:
        if any(isinstance(m, ast.FunctionDef) and m.name == "__init__" for m in node.body):
            return False
        bases = [classes[name] for b in node.bases if (name := ast.unparse(b)) in classes]
        return any(is_open(base) or inherits_from_open(base) for base in bases)

    assert {"Contribution", "WithoutData", "Process"} <= set(classes)
    closed = [node for node in classes.values() if not is_open(node)]
    assert [node.name for node in closed if inherits_from_open(node)] == []


def test_compiled_modules_of_mpi_raise_no_exception_for_the_program() -> None:
    # An exception that starts in compiled code counts as a bug of pysmpi.
    internal = ("LookupError", "NotImplementedError", "RuntimeError")
    raised = {
        f"{path.name}: {ast.unparse(node)}"
        for path, module in compiled_modules().items()
        if path.is_relative_to(ROOT / "pysmpi" / "mpi")
        for node in ast.walk(module)
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and not ast.unparse(node.exc).startswith(internal)
    }
    assert not raised
