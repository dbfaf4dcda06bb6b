"""Which modules every rank loads for itself, and which are loaded once for all.

| module | |
| --- | --- |
| named by `--private`, `--shared`, or the program itself | as named |
| of the standard library, of pysmpi | shared |
| of a known package of numbers, tables or plots, wherever it lies | shared |
| of a package that imports mpi4py, anywhere in its source, or calls communicators | private |
| of a tool that runs tests | private |
| installed in a site directory | shared |
| elsewhere, in a package with extension modules | shared |
| elsewhere | private |

A package that knows of MPI may keep what it learnt about its rank. Extension modules are shared
whatever their package is: an interpreter holds one copy of them.
"""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    BuiltinImporter,
    ExtensionFileLoader,
    FrozenImporter,
    PathFinder,
)
from typing import Any, NamedTuple

import pysmpi

# Of mpi4py itself, all is shared but what holds the state of one process.
MPI4PY_PRIVATE = (
    "mpi4py.MPI",
    "mpi4py.futures",
    "mpi4py.util.pool",
    "mpi4py.run",
    "mpi4py.bench",
    "mpi4py.__main__",
)

# Large packages with much compiled code, which take no notice of MPI or leave it alone by default.
KNOWN_SHARED = frozenset(
    """
    numpy scipy pandas matplotlib mpl_toolkits pylab torch torchvision torchaudio triton functorch
    jax jaxlib tensorflow tensorboard keras numba llvmlite cupy cupyx cupy_backends sklearn skimage
    sympy mpmath h5py tables netCDF4 cftime xarray dask distributed pyarrow polars duckdb numexpr
    bottleneck zarr numcodecs fsspec statsmodels networkx PIL cv2 lxml cffi pycparser cython Cython
    astropy erfa shapely pyproj geopandas IPython ipykernel traitlets zmq tornado jupyter_client
    pydantic pydantic_core sqlalchemy requests urllib3 certifi aiohttp cryptography psutil yaml
    google grpc ray onnx onnxruntime transformers tokenizers datasets accelerate lightning
    pytorch_lightning spacy nltk gensim xgboost lightgbm catboost plotly bokeh seaborn
    setuptools pkg_resources _distutils_hack pip debugpy pydevd coverage
    """.split()
)

# Tools whose globals say which test is running.
KNOWN_PRIVATE = frozenset("pytest _pytest pluggy hypothesis _hypothesis_globals nose".split())

_MPI = re.compile(
    rb"^[ \t]*(?:from|import)[ \t]+[^\n#]*\bmpi4py\b"
    rb"|(?:import_module|__import__)\([\s'\"]*mpi4py"
    rb"|\.(?:Get_rank|Get_size|Allreduce|Allgatherv?|Alltoallv?|Bcast|Sendrecv)\("
    rb"|\bcomm\.(?:bcast|gather|scatter|allreduce|allgather|[bB]arrier|rank|size)\b",
    re.MULTILINE,
)
# A line with an import, or one that begins a statement at the outermost level.
_STATEMENT = re.compile(
    rb"^([ \t]*)(?:(?:from|import)[ \t]+([A-Za-z_]\w*)|(?<![ \t])(def|class|async|@|\w+))",
    re.MULTILINE,
)
_TESTS = frozenset(("tests", "test", "testing", "__pycache__", "examples", "docs"))


def _directories(paths: Iterable[str | None]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for path in paths:
        if path:
            found[os.path.join(os.path.abspath(path), "")] = None
            found[os.path.join(os.path.realpath(path), "")] = None
    return tuple(found)


def _site_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    extra = list(getattr(site, "getsitepackages", list)())
    if hasattr(site, "getusersitepackages"):
        extra.append(site.getusersitepackages())
    distribution = [path for path in sys.path if path.endswith("dist-packages")]
    return _directories([paths["purelib"], paths["platlib"], *extra, *distribution])


def _standard_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return _directories([paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)])


class Rules:
    """Decides about modules by name and origin.

    `private` and `shared` name modules or packages (with all that is in them) that the user
    decided about; the longest name that fits counts.
    """

    def __init__(self, private: Iterable[str] = (), shared: Iterable[str] = ()) -> None:
        self.ordered: dict[str, bool] = {name: True for name in private}
        self.ordered.update({name: False for name in shared})
        self.found: dict[str, bool] = {"pysmpi": False, "mpi4py": False}
        self.found.update({name: True for name in MPI4PY_PRIVATE})
        self.site = _site_directories()
        self.standard = _standard_directories()
        self.own = _directories([os.path.dirname(pysmpi.__file__)])
        self.kinds: dict[str, bool] = {}  # of packages by their nature, once they are known

    def by_name(self, name: str) -> bool | None:
        """Whether module `name` is private, as far as its name tells."""
        if name == "__main__":
            return True
        for table in (self.ordered, self.found):
            if table:
                prefix = name
                while prefix:
                    verdict = table.get(prefix)
                    if verdict is not None:
                        return verdict
                    prefix = prefix.rpartition(".")[0]
        return None

    def by_origin(self, name: str, spec: Any) -> bool:
        """Whether module `name`, which `spec` describes, is private by what it is."""
        if spec.loader in (BuiltinImporter, FrozenImporter) or spec.origin in (
            "built-in",
            "frozen",
        ):
            return False
        places = _places(spec)
        if places and all(place.startswith(self.own) for place in places):
            return False
        if places and all(self._is_standard(place) for place in places):
            return False
        root = name.partition(".")[0]
        if root in KNOWN_SHARED:
            return False
        if root in KNOWN_PRIVATE:
            return True
        kind = self.kinds.get(root)
        if kind is None:
            kind = self._kind(root, name, spec, places)
        return kind

    def _kind(self, root: str, name: str, spec: Any, places: list[str]) -> bool:
        """Whether package `root` is private, by its files."""
        if name == root and spec.origin in (None, "namespace"):
            # The parts of a namespace package may be of any kind; it holds nothing itself.
            return not all(self.installed(place) for place in places)
        tree = places[0] if places else ""
        if name != root:
            # A namespace package: each of its parts is a package of its own.
            root = ".".join(name.split(".")[:2])
            if root in self.kinds:
                return self.kinds[root]
        if spec.submodule_search_locations:
            tree = spec.submodule_search_locations[0]
        self.kinds[root] = False  # where packages import each other in a circle
        nature = _examine(tree)
        private = (
            nature.knows
            or not (nature.compiled or all(self.installed(place) for place in places))
            or any(self._is_private_package(name) for name in nature.imports - {root})
        )
        self.kinds[root] = private
        return private

    def _is_private_package(self, root: str) -> bool:
        """Whether a package that another imports is private: then that one has to be as well.

        Otherwise it would hold the modules of the rank that imported it first.
        """
        if root in sys.stdlib_module_names or root in KNOWN_SHARED or root == "mpi4py":
            return False
        verdict = self.by_name(root)
        if verdict is not None:
            return verdict
        if root not in self.kinds:
            try:
                spec = PathFinder.find_spec(root)
            except (ImportError, AttributeError, ValueError):
                spec = None
            if spec is None:
                self.kinds[root] = False
            else:
                return self.by_origin(root, spec)
        return self.kinds[root]

    def _is_standard(self, path: str) -> bool:
        return path.startswith(self.standard) and not path.startswith(self.site)

    def installed(self, path: str) -> bool:
        """Whether the file `path` belongs to Python, to a site directory or to pysmpi."""
        if not os.path.isabs(path):
            path = os.path.abspath(path)
        return path.startswith(self.site + self.standard + self.own)

    def decide(self, name: str, spec: Any) -> bool:
        """Whether the module that was found as `spec` is private."""
        verdict = self.by_name(name)
        return self.by_origin(name, spec) if verdict is None else verdict

    def already_loaded(self, name: str, module: Any) -> bool:
        """Whether a module that the caller of a run has loaded would be private in it."""
        verdict = self.by_name(name)
        if verdict is not None:
            return verdict
        spec = getattr(module, "__spec__", None)
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or self.installed(file):
            return False
        return spec is None or not (is_extension(spec) or not self.by_origin(name, spec))


def _places(spec: Any) -> list[str]:
    """The files or directories in which a module was found."""
    if spec.origin is not None and spec.origin != "namespace":
        found = [spec.origin]
    else:
        found = list(spec.submodule_search_locations or ())
    return [place if os.path.isabs(place) else os.path.abspath(place) for place in found]


def _sources(tree: str) -> Iterator[str]:
    """The files of a module or package."""
    if not os.path.isdir(tree):
        yield tree
        return
    for directory, inner, files in os.walk(tree):
        inner[:] = [name for name in inner if name not in _TESTS]
        for file in files:
            yield os.path.join(directory, file)


class _Nature(NamedTuple):
    """Of a module or package: whether its Python code knows MPI, whether it has compiled modules.

    `imports` are the packages that it imports as it is imported itself.
    """

    knows: bool
    compiled: bool
    imports: set[str]


def _examine(tree: str) -> _Nature:
    """Read the files of a module or package."""
    compiled = False
    imports: set[str] = set()
    for path in _sources(tree):
        if path.endswith(".py"):
            try:
                with open(path, "rb") as stream:
                    source = stream.read()
            except OSError:
                continue
            if _MPI.search(source):
                return _Nature(True, compiled, imports)
            imports.update(_imported(source))
        elif path.endswith(tuple(EXTENSION_SUFFIXES)):
            compiled = True
    return _Nature(False, compiled, imports)


def _imported(source: bytes) -> set[str]:
    """The packages that a source imports outside of its functions and classes."""
    found: set[str] = set()
    inside = False
    for match in _STATEMENT.finditer(source):
        indented, name, keyword = match.groups()
        if not indented:
            inside = keyword in (b"def", b"class", b"async", b"@")
        if name is not None and not inside:
            found.add(name.decode())
    return found


def is_extension(spec: Any) -> bool:
    """Whether `spec` describes a compiled module."""
    return isinstance(spec.loader, ExtensionFileLoader)
