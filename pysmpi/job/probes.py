"""Tests of the facts of `pysmpi.python.facts`, each with the part that depends on it.

They run in a process of their own: a false fact may crash, and some tests change the process for
good. A probe raises `AssertionError` if its fact is false. A part that is not there, as pysmpi was
built without a C compiler, has nothing to test.
"""

from __future__ import annotations

import _thread
import datetime
import gc
import importlib.util
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import _bootstrap, _bootstrap_external
from types import BuiltinFunctionType, ModuleType
from typing import Any

from pysmpi.patching import lookalike
from pysmpi.python import class_dictionary, facts
from pysmpi.python.frames import BodySkipped, skip_body

FULL = 16384  # bytes of a stack of CPython


class Absent(Exception):
    """The part, or the package that it needs, is not installed: a build needs no numpy."""


def expect(condition: object, text: str) -> None:
    """Raise an error with `text` unless the condition holds."""
    if not condition:
        raise AssertionError(text)


def _part(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent from error


def frame_stacks() -> None:
    """Greenlets with fitted stacks call deep functions, and wait in them by turns."""
    stacks = _part("pysmpi.isolation.frame_stacks")
    greenlet = _part("greenlet").greenlet
    sizes: list[list[int]] = []
    before = stacks.room()
    greenlet(lambda: sizes.append(stacks.room())).switch()
    expect(sizes == [[FULL]], f"a greenlet has stacks of {sizes[0]} bytes, expected [{FULL}]")
    main = (
        greenlet.getcurrent() if hasattr(greenlet, "getcurrent") else _part("greenlet").getcurrent()
    )
    wait = stacks.waiting(main.switch)

    def deep(depth: int, value: int) -> int:
        kept = value + depth
        if depth % 40 == 0:
            wait()
        below = deep(depth - 1, value) if depth else value
        expect(kept == value + depth, "a variable of a function changed while its greenlet waited")
        return below

    first: list[list[int]] = []
    results: list[int] = []

    def body(value: int) -> None:
        wait()
        first.append(stacks.room())
        for _ in range(3):
            results.append(deep(200, value))

    begin = stacks.beginning
    fibers = [greenlet(begin(lambda value=value: body(value))) for value in range(8)]
    left = fibers
    while left:
        for fiber in left:
            fiber.switch()
        left = [fiber for fiber in left if not fiber.dead]
    expect(sorted(results) == sorted([*range(8)] * 3), "results of functions are mixed up")
    fitted = all(len(room) == 1 and room[0] < FULL for room in first)
    expect(
        fitted,
        f"the stacks of waiting greenlets have {first} bytes, expected one of less than 16 KiB",
    )
    expect(stacks.room() == before, "the stack of the main greenlet is another one afterwards")


def dictionary_versions() -> None:
    """Each kind of change of a dictionary is seen, and nothing else."""
    versions = _part("pysmpi.isolation.dict_versions").Versions()

    class Thing:
        pass

    space: dict[str, Any] = {"__name__": "probe"}
    exec("def assign(value):\n    global name\n    name = value\n", space)
    thing = Thing()
    changes: list[tuple[str, dict[str, Any], Callable[[int], object]]] = []
    plain: dict[str, Any] = {"a": 1, "b": 2}
    changes += [
        ("d[k] = v", plain, lambda i: plain.__setitem__("a", [i])),
        ("d[new] = v", plain, lambda i: plain.__setitem__(f"new {i}", i)),
        ("d.update", plain, lambda i: plain.update(a=[i])),
        ("d.setdefault", plain, lambda i: plain.setdefault(f"also {i}", i)),
        ("d.pop", plain, lambda i: plain.pop(f"new {i}")),
        ("d.popitem", plain, lambda i: plain.popitem()),
        ("d |= e", plain, lambda i: plain.__ior__({"b": [i]})),
        ("a global variable", space, lambda i: space["assign"]([i])),
        ("an attribute", vars(thing), lambda i: setattr(thing, "name", [i])),
        ("del an attribute", vars(thing), lambda i: delattr(thing, "name")),
        ("d.clear", plain, lambda i: plain.clear()),
    ]
    numbers = {id(one): versions.add(one) for one in (plain, space, vars(thing))}
    for text, dictionary, change in changes:
        number = numbers[id(dictionary)]
        for i in range(1 if text in ("d.clear", "del an attribute") else 30):
            versions.note(number)
            change(i)
            expect(versions.differs(number), f"{text}: the change is not seen")
            others = [one for one in numbers.values() if one != number]
            for one in others:
                versions.note(one)
            still = [versions.differs(one) for one in others if one != numbers[id(vars(thing))]]
            expect(not any(still), f"{text}: a change of another dictionary is seen")


def assignments() -> None:
    """Assignments in modules and classes are reported as long as they should be."""
    hooks = _part("pysmpi.isolation.kinds.attribute_hooks")

    class Module(ModuleType):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)

    class Meta(type):
        def __setattr__(cls, name: str, value: object) -> None:
            super().__setattr__(name, value)

    module: Any = ModuleType("probe")
    plain: Any = type("Plain", (), {"__module__": "probe"})
    special: Any = Meta("Special", (), {"__module__": "probe"})
    lazy: Any = Module("lazy")
    seen: list[tuple[object, str]] = []
    shared = {"probe": module, "lazy": lazy}
    hooks.observe(lambda thing, name, old: seen.append((thing, name)), shared, object())

    def assign(thing: Any) -> None:
        for i in range(30):
            thing.name = [i]

    try:
        for thing in (module, lazy, plain, special):
            assign(thing)
            expect(seen == [(thing, "name")] * 30, f"{len(seen)} of 30 assignments are seen")
            seen.clear()
        type.__setattr__(plain, "name", 1)
        ModuleType.__setattr__(module, "name", 1)
        del module.name, plain.name
        expect(len(seen) == 4, f"{len(seen)} of 4 assignments by slot and deletions are seen")
    finally:
        hooks.end()
    assign(module)
    expect(len(seen) == 4, "assignments are seen after the end")


def trace_functions() -> None:
    """Both functions are read and put back."""
    hooks = _part("pysmpi.isolation.kinds.trace_hooks")
    calls: list[str] = []

    def profile(frame: object, event: str, argument: object) -> None:
        calls.append(event)

    nothing = ((0, None), (0, None))
    expect(hooks.get() == nothing, "a hook is set although none should be")
    sys.setprofile(profile)
    hook, other = hooks.get()
    hooks.put(*nothing)
    taken = sys.getprofile()
    hooks.put(hook, other)
    given = sys.getprofile()
    calls.clear()
    len("")
    hooks.put(*nothing)
    expect(
        hook[0] and hook[1] is profile and other == (0, None), "the profiling function is not seen"
    )
    expect(taken is None and given is profile, "the profiling function is not exchanged")
    expect("c_call" in calls, "the profiling function is not called")


def builtin_functions() -> None:
    """The replacement is called, is of the type, does not bind, and can be freed."""

    def pair(*args: object, **kwargs: object) -> object:
        if kwargs.get("wrong"):
            raise ValueError("wrong")
        return args, kwargs

    for _ in range(50):
        new: Any = lookalike.made_builtin(len, pair)
        expect(type(new) is BuiltinFunctionType and new.__name__ == "len", f"it is {new!r}")
        expect(new(1, a=2) == ((1,), {"a": 2}), "its arguments are others")
        holder: Any = type("Holder", (), {"function": new})()
        expect(holder.function(3) == ((3,), {}), "it binds as a method")
        try:
            new(wrong=True)
        except ValueError:
            pass
        else:
            raise AssertionError("its exception is lost")
        del holder, new
        gc.collect()


def class_dictionaries() -> None:
    """A method of a class in C is replaced, also for code that has called the old one."""
    kind: Any = datetime.datetime
    for one in (kind, dict, type(_part("greenlet").getcurrent())):
        space = class_dictionary.writable(one)
        expect(space is not None, f"the dictionary of {one.__name__} is not shown")

    def call() -> object:
        return [kind.now() for _ in range(30)][-1]

    space = class_dictionary.writable(kind)
    assert space is not None
    old = space["now"]
    call()
    class_dictionary.update(kind, space, {"now": classmethod(lambda cls: "new")})
    new = call()
    class_dictionary.update(kind, space, {"now": old})
    expect(new == "new" and isinstance(call(), kind), "a changed method is not called")


def global_names() -> None:
    """The names that a function assigns are read, also those behind the first 256."""
    assigned = _part("pysmpi.isolation.kinds.assigned")
    names = [f"name_{i}" for i in range(600)]
    text = f"def assign():\n global {', '.join(names)}\n"
    text += "".join(f" {name} = other_{name}\n" for name in names)
    text += (
        " def inner():\n  global inside\n  inside = 1\n for _ in '  ':\n  assign\n return inner\n"
    )
    space: dict[str, Any] = {f"other_{name}": 0 for name in names}
    exec(text, space)
    for _ in range(30):
        space["assign"]()  # CPython adapts the instructions of functions that are called often
    seen = set(assigned.stored(space["assign"].__code__))
    expect(seen == {*names, "inside"}, f"{len(seen)} of {len(names) + 1} names are seen")


def blocks() -> None:
    """No form of `with` executes its body, and the target of `as` is bound."""
    ran: list[object] = []

    class Skipped:
        def __enter__(self) -> tuple[int, int]:
            skip_body()
            return 1, 2

        def __exit__(self, kind: object, error: object, trace: object) -> bool:
            return isinstance(error, BodySkipped)

    def without_target() -> None:
        with Skipped():
            ran.append(1)

    def name() -> object:
        with Skipped() as pair:
            ran.append(2)
        return pair

    def in_loop() -> object:
        for number in range(30):
            with Skipped():
                ran.append(number)
            last = number
        return last

    def inside() -> Iterator[object]:
        with Skipped() as pair, Skipped():
            ran.append(4)
        yield pair

    without_target()
    results = [name(), in_loop(), *inside()]
    expect(not ran, f"{len(ran)} bodies are executed")
    expect(results == [(1, 2), 29, (1, 2)], f"targets are {results}")
    expect(sys.gettrace() is None, "the tracing function is left")


def imports() -> None:
    """Imports call the functions that are replaced."""
    part = _part("pysmpi.isolation.loading.imports")
    bootstrap: Any = _bootstrap
    missing = [name for name in part.REPLACED if not hasattr(bootstrap, name)]
    expect(not missing, f"importlib._bootstrap has no {', '.join(missing)}")
    loader: Any = getattr(_bootstrap_external, "_LoaderBasics", None)
    expect(hasattr(loader, "exec_module"), "importlib has no _LoaderBasics.exec_module")
    calls: list[str] = []

    def noting(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def function(*args: Any, **kwargs: Any) -> object:
            calls.append(name)
            return real(*args, **kwargs)

        return function

    for name in part.REPLACED:
        setattr(bootstrap, name, noting(name, getattr(bootstrap, name)))
    real = loader.exec_module
    loader.exec_module = noting("exec_module", real)
    for name in ("colorsys", "quopri"):
        sys.modules.pop(name, None)
    exec("import colorsys", {})
    expected = ["_find_and_load", "_find_spec", "exec_module"]
    expect(calls == expected, f"an import statement calls {', '.join(calls)}")
    calls.clear()
    importlib.import_module("quopri")
    expect(calls[:3] == expected, f"importlib.import_module calls {', '.join(calls)}")
    calls.clear()
    begun: Any = ModuleType("begun")
    begun.__spec__ = importlib.util.spec_from_loader("begun", None)
    begun.__spec__._initializing = True
    sys.modules["begun"] = begun
    exec("import begun", {})
    expect(calls == ["_lock_unlock_module"], "an import of a module under way waits in another way")


def threads() -> None:
    """Threads are started, named and found through the functions that are replaced."""
    state: Any = threading
    names = ("_active", "_DummyThread", "_counter", "_MainThread", "_allocate_lock", "_CRLock")
    missing = [name for name in names if not hasattr(threading, name)]
    parts = ("_bootstrap", "_invoke_excepthook")
    missing += [f"Thread.{name}" for name in parts if not hasattr(threading.Thread(), name)]
    handle = _part("pysmpi.isolation.kinds.forks").HANDLE
    if not any(hasattr(threading.Thread(), name) for name in ("_tstate_lock", handle)):
        missing.append(f"Thread.{handle}")
    expect(not missing, f"threading has no {', '.join(missing)}")
    calls: list[str] = []
    starts = [n for n in ("_start_new_thread", "_start_joinable_thread") if hasattr(threading, n)]
    expect(starts, "threading has neither _start_new_thread nor _start_joinable_thread")
    start = starts[-1]
    real_start, real_body, real_ident = (
        getattr(state, start),
        state.Thread._bootstrap,
        state.get_ident,
    )

    def starting(function: Callable[..., object], *args: Any, **kwargs: Any) -> object:
        calls.append(getattr(function, "__name__", ""))
        return real_start(function, *args, **kwargs)

    def body(thread: Any) -> None:
        calls.append("body")
        real_body(thread)

    setattr(state, start, starting)
    state.Thread._bootstrap = body
    thread = threading.Thread(target=lambda: calls.append(threading.current_thread().name))
    thread.start()
    thread.join()
    expect(
        calls == ["body", "body", thread.name], f"the start of a thread calls {', '.join(calls)}"
    )
    expect(isinstance(_thread.allocate_lock(), _thread.LockType), "a lock has another type")
    state.get_ident = lambda: 4711
    unknown = threading.current_thread()
    state.get_ident = real_ident
    expect(type(unknown) is state._DummyThread, "an unknown thread has no _DummyThread")


def numpy_memory() -> None:
    """numpy's own handler is found, and one of another name takes its place."""
    numpy = _part("numpy")
    own = _part("pysmpi.folding.handler").Numpy()
    core: Any = numpy._core.multiarray if hasattr(numpy, "_core") else numpy.core.multiarray
    name = own.name.decode()
    expect(name == core.get_handler_name(), f"the handler is {name}, not {core.get_handler_name()}")
    expect(core.get_handler_version() == 1, f"handlers have version {core.get_handler_version()}")
    address = own.malloc(own.context, 4096)
    expect(address, "the handler gives no memory")


PROBES: dict[str, Callable[[], None]] = {
    "frame-stacks": frame_stacks,
    "dictionary-versions": dictionary_versions,
    "assignments": assignments,
    "trace-functions": trace_functions,
    "builtin-functions": builtin_functions,
    "class-dictionaries": class_dictionaries,
    "global-names": global_names,
    "blocks": blocks,
    "threads": threads,
    "numpy-memory": numpy_memory,
    "imports": imports,  # the last, as it leaves the import system changed
}


def wrong(name: str) -> str:
    """Test one fact; what is wrong with it, an empty text if nothing is."""
    try:
        PROBES[name]()
    except Absent:
        return ""
    except BaseException as error:
        text = " ".join(str(error).split())
        return text if type(error) is AssertionError else f"{type(error).__name__}: {text}"
    return ""


def containers(table: Mapping[str, Collection[str]]) -> tuple[set[str], list[str]]:
    """The installed libraries of a table of private containers, and the containers they lack.

    The patches of libraries (`pysmpi/patches/`) name the containers. Importing all libraries takes
    a while, so only `pysmpi doctor` asks. numpy 2.2 and later have no such containers.
    """
    installed, missing = set(), []
    for name, paths in table.items():
        library = name.partition(".")[0]
        if library == "numpy" or importlib.util.find_spec(library) is None:
            continue
        installed.add(library)
        try:
            module: object = importlib.import_module(name)
        except Exception:  # also an installation that is damaged
            module = None
        for path in paths:
            thing = module
            for part in path.rstrip("*+").rstrip(".").split("."):
                thing = getattr(thing, part, None)
            if not isinstance(thing, dict | list | set):
                missing.append(f"{name}.{path.rstrip('*+').rstrip('.')}")
    return installed, missing


def print_containers() -> None:
    """Print the names of the installed libraries, and a line for each container they lack."""
    table = _part("pysmpi.isolation.loading.libraries").all_containers()
    installed, missing = containers(table)
    print(*sorted(installed))
    print(*missing, sep="\n")


def main() -> None:
    """Test the facts that the arguments name, and print a line for each."""
    facts.assume({})
    for name in PROBES:
        if name in sys.argv[1:]:
            print(f"{name}: {wrong(name)}", flush=True)
