"""Virtual environments with published packages, MPICH, mpi4py and this checkout's pysmpi."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .entries import HERE, Entry

CHECKOUT = HERE.parent.parent
# The versions that were resolved once for an environment: pip's constraints.
VERSIONS = HERE / "versions"
TIMEOUT = 1800  # seconds of one command, such as an installation
COMMON = ["mpich==5.0.2", "mpi4py==4.1.2", "pytest>=8"]


class InstallError(Exception):
    """Something could not be installed; the text is pip's reason."""


class NoNetwork(InstallError):
    """The package index cannot be reached."""


def cache_folder() -> Path:
    """The place of environments, sources and results."""
    given = os.environ.get("PYSMPI_PACKAGES_CACHE")
    return Path(given).resolve() if given else CHECKOUT / ".cache" / "packages"


class Environments:
    """The virtual environments of the list, made and filled when they are needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        """The path of an environment."""
        tag = f"{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "environments" / f"{name}-{tag}"

    def prepare(self, name: str, entries: Sequence[Entry], pysmpi: bool = True) -> Path:
        """Install the requirements of these entries in an environment; return its folder."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(f"{path.name}.lock"):
            if not (path / "bin" / "python").exists():
                _call([sys.executable, "-m", "venv", str(path)], "cannot make an environment")
            for build in (False, True):
                wanted = [one for entry in entries if entry.build is build
                          for one in entry.requirements]  # fmt: skip
                self._install(path, name, [*COMMON, *wanted] if not build else wanted, build)
            if pysmpi:
                self._install_pysmpi(path)
        return path

    def _install(self, path: Path, name: str, wanted: list[str], build: bool) -> None:
        stamp = path / "installed.txt"
        have = set(stamp.read_text().splitlines()) if stamp.exists() else set()
        there = _distributions(path)
        missing = [one for one in dict.fromkeys(wanted)
                   if one not in have and _canonical(one) not in there]  # fmt: skip
        if not missing:
            return
        command = [str(path / "bin" / "python"), "-m", "pip", "install", "-q",
                   "--disable-pip-version-check", *missing]  # fmt: skip
        if not build:
            command += ["--only-binary", ":all:"]
        constraints = VERSIONS / f"{name}.txt"
        if constraints.exists():
            command += ["-c", str(constraints)]
        # An empty directory in the place of CUDA: packages are built for processors, and with the
        # compiler of the environment's MPI.
        with tempfile.TemporaryDirectory() as nothing:
            commands = f"{path / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
            settings = {"CUDA_PATH": nothing, "PATH": commands}
            _call(command, f"cannot install {', '.join(missing)}", environ=settings)
        stamp.write_text("\n".join(sorted(have | set(missing))) + "\n")

    def _install_pysmpi(self, path: Path) -> None:
        wheel = self._pysmpi_wheel()
        stamp = path / "pysmpi.txt"
        if stamp.exists() and stamp.read_text() == wheel.parent.name:
            return
        pip = [str(path / "bin" / "python"), "-m", "pip", "install", "-q",
               "--disable-pip-version-check"]  # fmt: skip
        site = Path(_call(
            [str(path / "bin" / "python"), "-c",
             "import sysconfig; print(sysconfig.get_path('platlib'))"], "no Python",
        ).strip())  # fmt: skip
        shutil.rmtree(site / "pysmpi", ignore_errors=True)
        if not stamp.exists():
            _call([*pip, str(wheel)], "cannot install pysmpi")
        _call([*pip, "--no-deps", "--force-reinstall", str(wheel)], "cannot install pysmpi")
        # A pure wheel: the compiled modules are those of the checkout.
        for module in _compiled():
            shutil.copy2(module, site / module.relative_to(CHECKOUT))
        stamp.write_text(wheel.parent.name)

    def _pysmpi_wheel(self) -> Path:
        """This checkout's pysmpi as a wheel, made once for each state of its sources."""
        sources = [path for path in sorted((CHECKOUT / "pysmpi").rglob("*"))
                   if path.is_file() and "__pycache__" not in path.parts]  # fmt: skip
        digest = hashlib.sha256()
        for path in [*sources, *_compiled(), CHECKOUT / "setup.py", CHECKOUT / "pyproject.toml"]:
            digest.update(str(path.relative_to(CHECKOUT)).encode() + path.read_bytes())
        with self._locked("wheel.lock"):
            folder = self.folder / "wheels" / digest.hexdigest()[:16]
            for wheel in folder.glob("*.whl"):
                return wheel
            shutil.rmtree(self.folder / "wheels", ignore_errors=True)
            with tempfile.TemporaryDirectory() as scratch:
                tree = Path(scratch) / "pysmpi"
                shutil.copytree(CHECKOUT / "pysmpi", tree / "pysmpi",
                                ignore=shutil.ignore_patterns("__pycache__", "*.so"))  # fmt: skip
                for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
                    shutil.copy(CHECKOUT / name, tree)
                command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps",
                           "-w", str(folder), "."]  # fmt: skip
                # Older setuptools need `wheel` to make one, and nothing of ours installs it.
                if all(map(importlib.util.find_spec, ("setuptools", "wheel", "mypy"))):
                    command.append("--no-build-isolation")
                pure = {"PYSMPI_PURE": "1"} if _compiled() else {}
                _call(command, "cannot build pysmpi", cwd=tree, environ=pure)
            return next(folder.glob("*.whl"))

    def source(self, package: str, version: str, python: Path) -> Path:
        """The unpacked source distribution of a package, with the pip of an interpreter."""
        folder = self.folder / "sources" / f"{package}-{version}"
        with self._locked("sources.lock"):
            if not folder.exists():
                with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                    # The package's build tools may be wheels: else pip compiles CMake.
                    _call([str(python), "-m", "pip", "download", "-q",
                           "--disable-pip-version-check", "--no-deps", "--no-binary", package,
                           "-d", scratch, f"{package}=={version}"],
                          f"cannot download the source of {package}")  # fmt: skip
                    archive = next(one for one in Path(scratch).iterdir() if one.is_file())
                    inside = Path(scratch) / "inside"
                    if archive.suffix == ".zip":
                        with zipfile.ZipFile(archive) as packed:
                            packed.extractall(inside)
                    else:
                        with tarfile.open(archive) as packed:
                            packed.extractall(inside, filter="data")
                    folder.parent.mkdir(exist_ok=True)
                    next(inside.iterdir()).rename(folder)
        return folder

    def freeze(self, name: str) -> None:
        """Write the versions that an environment has to its file of constraints."""
        text = _call([str(self.path(name) / "bin" / "python"), "-m", "pip", "freeze",
                      "--disable-pip-version-check"], "cannot list versions")  # fmt: skip
        kept = [line for line in text.splitlines() if "==" in line and "pysmpi" not in line]
        (VERSIONS / f"{name}.txt").write_text("\n".join(sorted(kept, key=str.lower)) + "\n")

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with open(self.folder / name, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _compiled() -> list[Path]:
    """The compiled modules of the checkout, if they were built from its present sources."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    modules = sorted((CHECKOUT / "pysmpi").rglob(f"*{suffix}"))
    for module in modules:
        stem = module.name.removesuffix(suffix)
        sources = [module.with_name(stem + end) for end in (".py", ".c")]
        times = [source.stat().st_mtime for source in sources if source.exists()]
        if not times or max(times) > module.stat().st_mtime:
            return []
    return [*CHECKOUT.glob(f"pysmpi__mypyc{suffix}"), *modules] if modules else []


def _canonical(requirement: str) -> str:
    """`name==version` as it is compared."""
    name, equals, version = requirement.partition("==")
    return re.sub(r"[-_.]+", "-", name).lower() + equals + version


def _distributions(path: Path) -> set[str]:
    """`name==version` of all packages of an environment."""
    found = set()
    for one in path.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = one.name.removesuffix(".dist-info").partition("-")
        found.add(_canonical(f"{name}=={version}"))
    return found


def _call(
    command: list[str], failure: str, cwd: Path | None = None, environ: dict[str, str] | None = None
) -> str:
    settings = {**os.environ, **(environ or {})}
    settings.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=settings,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InstallError(f"{failure}: it takes more than {TIMEOUT} s") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in said if "ERROR" in line] or said[-3:] or ["no reason given"]
        unreached = re.search(
            r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|Network is unreach",
            done.stderr,
        )
        if unreached:
            raise NoNetwork(f"{failure}: the package index cannot be reached")
        raise InstallError(f"{failure}: {' '.join(errors)[-800:]}")
    return done.stdout
