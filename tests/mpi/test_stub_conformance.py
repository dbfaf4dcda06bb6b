"""mpi4py's own type stubs are the contract: every name of MPI.pyi exists here, called alike."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path
from typing import Any

import pytest

from pysmpi.mpi import MPI


def stub() -> ast.Module:
    spec = importlib.util.find_spec("mpi4py")
    assert spec is not None and spec.origin is not None
    return ast.parse(Path(spec.origin).with_name("MPI.pyi").read_text())


STUB = stub()
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CONSTANTS = {
    node.target.id: ast.unparse(node.annotation)
    for node in STUB.body
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
}
ALIASES = {
    node.targets[0].id: node.value.id
    for node in STUB.body
    if isinstance(node, ast.Assign)
    and isinstance(node.targets[0], ast.Name)
    and isinstance(node.value, ast.Name)
}
NAMES = {*CLASSES, *FUNCTIONS, *CONSTANTS, *ALIASES}


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """The methods of a class, without the overloaded ones."""
    return [
        item
        for item in node.body
        if isinstance(item, ast.FunctionDef)
        and "overload" not in [ast.unparse(mark) for mark in item.decorator_list]
    ]


def marks(function: ast.FunctionDef) -> set[str]:
    return {ast.unparse(mark) for mark in function.decorator_list}


METHODS = [
    pytest.param(name, function, id=f"{name}.{function.name}")
    for name, node in CLASSES.items()
    for function in methods(node)
]
PROPERTIES = [
    pytest.param(name, item.target.id, id=f"{name}.{item.target.id}")
    for name, node in CLASSES.items()
    for item in node.body
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
]


def value_of(default: ast.expr) -> Any:
    """The value of a default of the stub."""
    return eval(ast.unparse(default), dict(vars(MPI)))


def expected(function: ast.FunctionDef) -> list[tuple[str, Any, Any]]:
    """The parameters that the stub asks for: name, kind, default."""
    kinds = inspect.Parameter
    args = function.args
    parameters: list[tuple[str, Any, Any]] = []
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    for i, (arg, default) in enumerate(zip(positional, defaults)):
        only = i < len(args.posonlyargs)
        kind = kinds.POSITIONAL_ONLY if only else kinds.POSITIONAL_OR_KEYWORD
        parameters.append((arg.arg, kind, kinds.empty if default is None else value_of(default)))
    if args.vararg is not None:
        parameters.append((args.vararg.arg, kinds.VAR_POSITIONAL, kinds.empty))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults):
        parameters.append(
            (arg.arg, kinds.KEYWORD_ONLY, kinds.empty if default is None else value_of(default))
        )
    if args.kwarg is not None:
        parameters.append((args.kwarg.arg, kinds.VAR_KEYWORD, kinds.empty))
    return parameters


def found(function: Any) -> list[tuple[str, Any, Any]]:
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def test_there_are_370_public_names() -> None:
    assert len([name for name in NAMES if not name.startswith("_")]) == 370


def test_every_name_exists() -> None:
    missing = {name for name in NAMES if not hasattr(MPI, name)}
    assert not missing, sorted(missing)


def test_no_other_name_is_public() -> None:
    public = {name for name in vars(MPI) if not name.startswith("_")}
    assert public <= NAMES, sorted(public - NAMES)


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_constants_have_the_type_of_the_stub(name: str) -> None:
    value = getattr(MPI, name)
    kind = CONSTANTS[name].removeprefix("Final[").removesuffix("]")
    if kind.startswith("dict"):
        assert isinstance(value, dict)
    else:
        assert isinstance(value, int if kind == "int" else getattr(MPI, kind))


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_aliases_are_the_same_object(name: str) -> None:
    assert getattr(MPI, name) is getattr(MPI, ALIASES[name])


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_derive_as_in_the_stub(name: str) -> None:
    cls = getattr(MPI, name)
    assert cls.__module__ == "mpi4py.MPI"
    assert cls.__name__ == cls.__qualname__ == name
    for base in CLASSES[name].bases:
        parent = ast.unparse(base)
        assert issubclass(cls, RuntimeError if parent == "RuntimeError" else getattr(MPI, parent))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_have_the_signature_of_the_stub(name: str) -> None:
    function = getattr(MPI, name)
    assert function.__module__ == "mpi4py.MPI"
    assert found(function) == expected(FUNCTIONS[name])


@pytest.mark.parametrize(("name", "function"), METHODS)
def test_methods_have_the_signature_of_the_stub(name: str, function: ast.FunctionDef) -> None:
    cls = getattr(MPI, name)
    member = inspect.getattr_static(cls, function.name)
    if function.name.startswith("__") and function.name not in ("__new__", "__init__"):
        return
    if "property" in marks(function):
        assert inspect.isdatadescriptor(member)
        return
    assert isinstance(member, classmethod) == ("classmethod" in marks(function))
    if function.name != "__new__":
        assert isinstance(member, staticmethod) == ("staticmethod" in marks(function))
    plain = getattr(member, "__func__", member)
    if plain is object.__new__:
        assert [name for name, _, _ in expected(function)] == ["cls"]
    else:
        assert found(plain) == expected(function)


# Parameters of lower chapters of MPI than the class that the stub names: checked when called.
UNTYPED = {("Datatype", "comm"), ("Message", "comm")}


@pytest.mark.parametrize(("name", "function"), METHODS)
def test_parameters_have_a_type_if_the_stub_has_one(name: str, function: ast.FunctionDef) -> None:
    plain = inspect.unwrap(getattr(getattr(MPI, name), function.name))
    given = getattr(plain, "__annotations__", {})
    for argument in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]:
        if argument.annotation is None or argument.arg not in given:
            continue
        ours, theirs = given[argument.arg], ast.unparse(argument.annotation)
        wanted = not function.name.startswith("_") and (name, argument.arg) not in UNTYPED
        # A caller can pass anything to either.
        assert not wanted or (ours in ("Any", "object")) == (theirs == "Any"), argument.arg


@pytest.mark.parametrize(("name", "member"), PROPERTIES)
def test_properties_exist(name: str, member: str) -> None:
    cls = getattr(MPI, name)
    descriptor = inspect.getattr_static(cls, member, None)
    if cls.__name__ == "Pickle":
        descriptor = getattr(cls, member, None)
    assert descriptor is not None


@pytest.mark.parametrize(
    "name", sorted(name for name in {*CLASSES, *FUNCTIONS} if not name.startswith("_"))
)
def test_docstrings_have_the_form_of_mpi4py(name: str) -> None:
    """A signature, an empty line, a sentence."""
    obj = getattr(MPI, name)
    if isinstance(obj, type):
        members = [
            (key, getattr(value, "__func__", value))
            for key, value in vars(obj).items()
            if not key.startswith("_") and callable(getattr(value, "__func__", value))
        ]
        assert obj.__doc__ and obj.__doc__.strip().endswith(".")
    else:
        members = [(name, obj)]
    for key, function in members:
        head, _, text = function.__doc__.partition("\n\n")
        assert head.startswith(f"{function.__name__}("), key
        assert text.strip()[0].isupper() and text.strip().endswith("."), key
