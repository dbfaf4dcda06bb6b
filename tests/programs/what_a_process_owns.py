"""Print the state of a process row by row, under `mpiexec` and under `pysmpi run`.

The argument is a directory, into which every rank writes its rows as JSON. A row of `SEEN` is an
expression. A row of `CHANGED` is a change, which rank 1 makes, and an expression that all ranks
evaluate afterwards. Functions that run at the end of the process write to a file of their own.
"""
# ruff: noqa: E402, E501 - the first thing to be seen is what there is before imports; a row, a line

from __future__ import annotations

import sys

if __name__ == "__main__":
    original = list(sys.argv), list(sys.path), sorted(sys.modules)

import argparse  # noqa: F401
import array  # noqa: F401
import asyncio  # noqa: F401
import atexit
import builtins  # noqa: F401
import calendar  # noqa: F401
import codecs  # noqa: F401
import collections.abc  # noqa: F401
import contextvars
import copyreg  # noqa: F401
import csv  # noqa: F401
import ctypes
import datetime  # noqa: F401
import decimal  # noqa: F401
import email.charset  # noqa: F401
import email.message  # noqa: F401
import faulthandler  # noqa: F401
import fcntl  # noqa: F401
import functools
import gc  # noqa: F401
import getpass  # noqa: F401
import gettext  # noqa: F401
import http.client  # noqa: F401
import importlib  # noqa: F401
import inspect  # noqa: F401
import io  # noqa: F401
import json
import linecache  # noqa: F401
import locale  # noqa: F401
import logging
import math  # noqa: F401
import mimetypes  # noqa: F401
import multiprocessing.spawn  # noqa: F401
import numbers  # noqa: F401
import os
import pickle  # noqa: F401
import platform  # noqa: F401
import random  # noqa: F401
import re
import resource  # noqa: F401
import select  # noqa: F401
import shutil  # noqa: F401
import signal  # noqa: F401
import site  # noqa: F401
import socket  # noqa: F401
import sqlite3  # noqa: F401
import ssl  # noqa: F401
import string  # noqa: F401
import subprocess
import sysconfig  # noqa: F401
import tempfile  # noqa: F401
import threading
import time
import tracemalloc  # noqa: F401
import types  # noqa: F401
import unittest.mock  # noqa: F401
import urllib.request  # noqa: F401
import uuid  # noqa: F401
import warnings
import weakref
import webbrowser  # noqa: F401
import xml.etree.ElementTree  # noqa: F401
import zoneinfo  # noqa: F401

import numpy  # noqa: F401
import yaml  # noqa: F401
from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.rank


class Point:
    """A class of the program."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return type(other) is Point and other.x == self.x


libc = ctypes.CDLL(None)
words = ctypes.create_string_buffer(20)
heard = []


def text_of(name, *arguments):
    """The text that a function of C returns."""
    function = ctypes.CDLL(None)[name]
    function.restype = ctypes.c_char_p
    return function(*arguments)


def subprocess_by_fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitpid(child, 0)[1]


class Holder:
    """Keeps functions as class attributes."""

    time = time.time
    getpid = os.getpid


@functools.cache
def cached(x):
    return x * random.random()


class Finder:
    """An import hook."""

    def find_spec(self, name, path=None, target=None):
        if name == "made_up_by_a_hook":
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.made_by = rank


class Upper(codecs.Codec):
    def encode(self, text, errors="strict"):
        return text.upper().encode(), len(text)

    def decode(self, data, errors="strict"):
        return bytes(data).decode().lower(), len(data)


def search(name):
    if name == "made_up":
        return codecs.CodecInfo(Upper().encode, Upper().decode, name="made_up")
    return None


def code(text, *arguments, **options):
    """Return the output of a Python that this process starts."""
    command = [sys.executable, "-c", text, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1:]


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return oct(mask)


def created_mode():
    path = os.path.join(tempfile.gettempdir(), f"owned-{os.getpid()}")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))
    mode = oct(os.stat(path).st_mode)
    os.unlink(path)
    return mode


def distinct(value):
    """The number of different values of the ranks."""
    return len(set(world.allgather(value)))


def same(value):
    return distinct(value) == 1


def can_import(name):
    sys.modules.pop(name, None)
    try:
        return importlib.import_module(name).made_by
    except ImportError as error:
        return str(error)


def captured(action):
    """The text written to `sys.stderr` meanwhile."""
    stream, sys.stderr = sys.stderr, io.StringIO()
    try:
        action()
        return re.sub(r'File ".*/', 'File ".../', sys.stderr.getvalue())
    finally:
        sys.stderr = stream


def warned(category=UserWarning):
    """The number of three warnings that are shown."""
    shown = []
    show, warnings.showwarning = warnings.showwarning, lambda *what: shown.append(what)
    try:
        for _ in range(3):
            warnings.warn("a warning", category, stacklevel=1)
    except Warning:
        return "raised"
    finally:
        warnings.showwarning = show
    return len(shown)


def logged(level):
    """The output of a logger."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    logger = logging.getLogger("a.logger")
    logger.addHandler(handler)
    logger.log(level, "message %d", 1)
    logger.removeHandler(handler)
    return stream.getvalue()


def in_thread(function):
    """The return value of a function in a thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()), name="a thread")
    thread.start()
    thread.join()
    return found[0]


def raise_in_thread():
    def body():
        raise LookupError("in a thread")

    thread = threading.Thread(target=body, name="failing")
    thread.start()
    thread.join()


class Unraisable:
    def __del__(self):
        raise LookupError("in a finalizer")


def drop():
    thing = Unraisable()
    del thing


def looks(function):
    """The look of a function: to repr, type, inspect and pickle."""
    try:
        signature = str(inspect.signature(function))
    except ValueError:
        signature = "none"
    try:
        kept = pickle.loads(pickle.dumps(function)) is function
    except Exception as error:
        kept = type(error).__name__
    text = re.sub("0x[0-9a-f]+", "0x", repr(function))
    return [
        text,
        type(function).__name__,
        signature,
        kept,
        bool(function.__doc__),
        inspect.isbuiltin(function),
        inspect.isfunction(function),
        function.__module__,
    ]


def traced(function):
    """Events of a tracing function."""
    events = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: events.append(event))
    function()
    sys.settrace(before)
    return len(events) > 0


def received(number):
    """Whether a signal that the process sends to itself is received."""
    got = []
    before = signal.signal(number, lambda number, frame: got.append(signal.Signals(number).name))
    os.kill(os.getpid(), number)
    for _ in range(1000):
        if got:
            break
    signal.signal(number, before)
    return got


def stream(file):
    return [
        type(file).__name__,
        file.name,
        file.mode,
        file.encoding,
        file.errors,
        file.newlines,
        file.line_buffering,
        file.write_through,
        file.isatty(),
        file.fileno(),
        type(file.buffer).__name__,
        file.readable(),
        file.writable(),
    ]


def child(function):
    """The result of a check in a child of `os.fork`, as its exit status."""
    process = os.fork()
    if process == 0:
        status = 99
        try:
            status = int(function())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


variable = contextvars.ContextVar("variable", default="unset")
local = threading.local()
local.value = "main"
own_module = types.ModuleType("made_by_hand")

# Values that a rank sees without changes: (group, expression).
SEEN = """
arguments: original[0][1:] == [sys.argv[1]] and os.path.basename(original[0][0])
arguments: sys.orig_argv[-1:] == sys.argv[-1:], os.path.basename(sys.orig_argv[-2])
arguments: type(sys.argv), len(sys.argv)
arguments: argparse.ArgumentParser().prog
paths: original[1][0] == os.path.dirname(os.path.abspath(__file__)), len(original[1]) - len(set(original[1]))
paths: [os.path.basename(entry) for entry in original[1]]
paths: sys.executable, sys.prefix, sys.base_prefix
paths: os.path.realpath(os.__file__)
paths: site.ENABLE_USER_SITE, site.PREFIXES
paths: sysconfig.get_path("purelib")
paths: [getattr(hook, "__name__", str(hook)) for hook in sys.path_hooks]
paths: [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path][:3]
modules: sys.modules["__main__"].__dict__ is globals()
modules: __name__, os.path.basename(__file__), __spec__, __package__, type(__loader__).__name__, __builtins__ is builtins
modules: type(sys), type(os), repr(sys), repr(time)
modules: "site" in sys.modules, "numpy" in original[2], "mpi4py" in original[2]
modules: "unittest" in original[2], "json" in original[2], "asyncio" in original[2]
modules: importlib.reload(string) is string
modules: importlib.util.find_spec("wave").name, importlib.util.find_spec("no_such_module")
modules: attempt(importlib.import_module, "no_such_module")
modules: isinstance(sys.modules, dict), type(sys.modules)
__main__: pickle.loads(pickle.dumps(Point(3))) == Point(3), Point.__module__
__main__: pickle.dumps(Point).count(b"__main__")
__main__: world.bcast(Point(rank), 0).x
__main__: inspect.getsource(Point).splitlines()[0], os.path.basename(inspect.getfile(Point))
__main__: linecache.getline(__file__, 1).strip()
__main__: pickle.loads(pickle.dumps(umask)) is umask
functions: looks(time.time)
functions: looks(time.sleep)
functions: looks(os.getpid)
functions: looks(os.chdir)
functions: looks(os.dup2)
functions: looks(os.close)
functions: looks(os.kill)
functions: looks(os.read)
functions: looks(print)
functions: looks(input)
functions: looks(open)
functions: looks(random.random)
functions: looks(random.seed)
functions: looks(numpy.random.rand)
functions: looks(numpy.random.seed)
functions: looks(numpy.random.default_rng)
functions: looks(gc.disable)
functions: looks(atexit.register)
functions: looks(signal.signal)
functions: looks(sys.setrecursionlimit)
functions: looks(sys.settrace)
functions: looks(warnings.warn)
functions: looks(warnings.simplefilter)
functions: looks(select.select)
functions: looks(socket.gethostname)
functions: looks(platform.node)
functions: looks(threading.get_ident)
functions: looks(threading.current_thread)
functions: looks(threading.active_count)
functions: looks(threading.Lock)
functions: looks(datetime.datetime.now)
functions: looks(faulthandler.enable)
functions: looks(os.getppid)
functions: looks(os._exit)
functions: looks(os.system)
functions: looks(subprocess.run)
functions: Holder().time() > 0, Holder().getpid() == os.getpid()
functions: time.time.__self__.__name__, os.getpid.__self__.__name__, type(time.time.__self__)
functions: datetime.datetime.__name__, type(datetime.datetime.now()), pickle.loads(pickle.dumps(datetime.datetime.now())).year > 1999
functions: sys.getsizeof([]), sys.getsizeof({}), sys.getsizeof(Point(1)), sys.getsizeof(time.time)
identity: distinct(os.getpid()) == world.size, os.getpid() == os.getpid()
identity: os.getpid() == int(os.path.basename(os.readlink("/proc/self")))
identity: same(os.getppid()), os.getppid() != os.getpid()
identity: same(os.getuid()), os.getuid(), os.geteuid(), os.getgid(), os.getgroups()
identity: getpass.getuser(), os.path.expanduser("~")
identity: same(os.getsid(0)), attempt(os.getpgid, os.getpid()) == os.getpgid(0)
identity: platform.node() == socket.gethostname() == os.uname().nodename == platform.uname().node
identity: same(socket.gethostname()), MPI.Get_processor_name() == socket.gethostname()
identity: socket.gethostname() == open("/proc/sys/kernel/hostname").read().strip()
identity: attempt(lambda: bool(socket.gethostbyname(socket.gethostname())))
identity: platform.system(), platform.machine(), platform.python_version(), sys.version
identity: distinct(uuid.uuid4()), distinct(uuid.uuid1()), same(uuid.getnode())
identity: os.cpu_count(), sorted(os.sched_getaffinity(0))
identity: os.getpriority(os.PRIO_PROCESS, 0), os.nice(0)
identity: len(os.times()), os.times().elapsed > 0
identity: sys.flags
identity: sys.implementation.name, sys.platform, sys.byteorder, sys.maxsize, sys.hexversion
identity: sys.getfilesystemencoding(), sys.getdefaultencoding(), sys.dont_write_bytecode, sys.warnoptions, sys._xoptions
identity: hash("text") == int(code("print(hash('text'))", env={**os.environ, "PYTHONHASHSEED": "0"})), sys.hash_info.algorithm
identity: same(os.environ.get("PYTHONHASHSEED"))
limits: resource.getrlimit(resource.RLIMIT_NOFILE)
limits: resource.getrlimit(resource.RLIMIT_STACK), resource.getrlimit(resource.RLIMIT_CORE)
limits: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0
limits: sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()
limits: gc.isenabled(), gc.get_threshold(), gc.get_debug()
limits: attempt(lambda: (lambda f: f(f))(lambda f: f(f))).split(":")[0]
environment: os.environ.get("PMI_RANK"), os.environ.get("PMI_SIZE")
environment: os.environ.get("MPI_LOCALRANKID"), os.environ.get("MPI_LOCALNRANKS")
environment: os.environ.get("OMPI_COMM_WORLD_RANK")
environment: os.environ["PATH"], os.environ.get("HOME"), os.environ.get("LANG"), os.environ.get("TZ")
environment: type(os.environ), attempt(lambda: os.environ["no such variable"]), os.getenv("no", "default"), os.environb.get(b"HOME")
environment: code("import os; print(os.environ.get('PMI_RANK'))")
environment: "PMI_RANK" in os.environ, "PMI_RANK" in dict(os.environ), "PMI_RANK" in os.environ.copy(), len(os.environ) == len(list(os.environ))
environment: os.getcwd() == os.path.realpath(os.environ.get("PWD", "."))
environment: os.popen("echo $PMI_RANK").read().strip()
files: umask(), created_mode()
files: tempfile.gettempdir(), tempfile.tempdir
files: distinct(tempfile.mktemp()) == world.size
files: [os.get_inheritable(fd) for fd in range(3)]
files: [os.isatty(fd) for fd in range(3)]
files: stream(sys.stdout)
files: stream(sys.stderr)
files: stream(sys.__stdout__) == stream(sys.stdout), sys.__stdout__ is sys.stdout, sys.__stderr__ is sys.stderr, sys.__stdin__ is sys.stdin
files: stream(sys.stdin)
files: rank == 0 and (input(), sys.stdin.readline(), sys.stdin.read(), attempt(input))
files: os.path.realpath(os.curdir) == os.getcwd()
hooks: sys.excepthook is sys.__excepthook__, looks(sys.excepthook)
hooks: sys.unraisablehook is sys.__unraisablehook__, looks(sys.unraisablehook)
hooks: sys.displayhook is sys.__displayhook__, sys.breakpointhook is sys.__breakpointhook__
hooks: threading.excepthook is threading.__excepthook__
hooks: sys.gettrace(), sys.getprofile(), sys.getunraisablehook() if hasattr(sys, "getunraisablehook") else None
hooks: captured(raise_in_thread).splitlines()[:2], captured(raise_in_thread).splitlines()[-1:]
hooks: captured(drop).splitlines()[-1:]
hooks: sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth()
hooks: faulthandler.is_enabled()
hooks: tracemalloc.is_tracing(), tracemalloc.get_traceback_limit()
hooks: hasattr(sys, "ps1"), hasattr(sys, "last_value"), hasattr(builtins, "_")
warnings: [entry[0] for entry in warnings.filters]
warnings: warned(), warned(DeprecationWarning), warnings.defaultaction
warnings: captured(lambda: warnings.warn("shown", stacklevel=1))
logging: logging.root.level, logging.root.handlers, logging.root.manager.disable, logging.lastResort.level
logging: logged(logging.INFO), logged(logging.WARNING)
logging: logging.getLogger("x") is logging.getLogger("x"), repr(logging.root), logging.raiseExceptions
logging: [name for name in ("processName", "threadName", "process") if getattr(logging.makeLogRecord({}), name) in ("MainProcess", "MainThread", os.getpid())]
random: (random.seed(5), random.random(), random.gauss(0, 1), random.sample(range(99), 4))[1:]
random: (numpy.random.seed(5), numpy.random.rand(), numpy.random.normal(), numpy.random.permutation(5).tolist())[1:]
random: random.Random(3).random(), numpy.random.default_rng(3).random(), numpy.random.RandomState(3).rand()
random: distinct(random.Random().random()), distinct(numpy.random.default_rng().random()), distinct(os.urandom(8))
random: type(random.getstate()), len(random.getstate()[1]), type(random._inst)
random: isinstance(numpy.random.mtrand._rand, numpy.random.RandomState), numpy.random.get_state()[0]
numbers: decimal.getcontext().prec, decimal.getcontext().rounding
numbers: numpy.geterr(), numpy.get_printoptions()["precision"]
numbers: locale.setlocale(locale.LC_ALL, None), locale.getpreferredencoding(False), locale.localeconv()["decimal_point"]
threads: threading.current_thread().name, threading.main_thread() is threading.current_thread(), type(threading.main_thread()).__name__
threads: threading.active_count(), [thread.name for thread in threading.enumerate()]
threads: threading.get_ident() == threading.main_thread().ident, threading.get_native_id() > 0
threads: in_thread(lambda: [threading.current_thread().name, threading.active_count(), getattr(local, "value", None)])
threads: in_thread(lambda: threading.get_ident()) != threading.get_ident(), local.value
threads: threading.main_thread().daemon, threading.main_thread().is_alive(), attempt(threading.main_thread().join)
threads: in_thread(lambda: variable.get()), in_thread(lambda: decimal.getcontext().prec)
threads: threading.stack_size(), threading.TIMEOUT_MAX > 1e6
threads: multiprocessing.get_start_method(), multiprocessing.current_process().name, multiprocessing.parent_process()
threads: multiprocessing.active_children(), multiprocessing.cpu_count()
threads: asyncio.run(asyncio.sleep(0.01, "slept")), type(asyncio.get_event_loop_policy()).__name__
threads: attempt(asyncio.get_running_loop)
threads: child(lambda: 7), child(lambda: os.getppid() == os.getppid() and 3)
signals: {number.name: str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE, signal.SIGCHLD)}
signals: signal.getsignal(signal.SIGINT) is signal.default_int_handler
signals: received(signal.SIGUSR1), received(signal.SIGTERM)
signals: sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), signal.getitimer(signal.ITIMER_REAL)
signals: attempt(lambda: os.kill(os.getpid(), 0))
sockets: socket.getdefaulttimeout(), ssl.OPENSSL_VERSION[:7], attempt(lambda: socket.socket().gettimeout())
time: time.timezone, time.tzname, time.daylight, time.localtime(0)[:6]
time: time.time() > 9e8, abs(time.time() - datetime.datetime.now().timestamp()) < 60
time: 0.009 < (lambda begin: (time.sleep(0.01), time.perf_counter() - begin)[1])(time.perf_counter())
time: time.get_clock_info("monotonic").monotonic, time.get_clock_info("time").adjustable
time: time.process_time() >= 0, time.thread_time() >= 0, time.strftime("%Y", time.gmtime(0))
time: abs(time.time() - os.stat(tempfile.mkdtemp()).st_mtime) < 60
"""

# (group, the change that rank 1 makes, an expression that all ranks evaluate then).
CHANGED = """
files: os.chdir("/") -> os.getcwd() == "/", os.path.abspath("x") == "/x"
files: os.umask(0o27) -> umask(), created_mode()
files: os.dup2(os.open(os.devnull, os.O_WRONLY), 2) -> os.path.realpath("/proc/self/fd/2") == "/dev/null"
files: os.dup2(os.open(os.devnull, os.O_RDONLY), 0) -> os.readlink("/proc/self/fd/0") == "/dev/null" and subprocess.run(["readlink", "/proc/self/fd/0"], capture_output=True, text=True).stdout.strip() == "/dev/null"
files: os.close(0) -> attempt(os.fstat, 0) is None or isinstance(attempt(os.fstat, 0), str)
files: tempfile.tempdir = "/var/tmp" -> tempfile.gettempdir()
files: sys.stdout = io.StringIO() -> type(sys.stdout).__name__
files: sys.stdout = sys.__stdout__; sys.stdin = io.StringIO("text") -> isinstance(sys.stdin, io.StringIO) and input()
files: sys.stdout.reconfigure(line_buffering=True) -> sys.stdout.line_buffering
files: sys.stdout.reconfigure(errors="replace") -> sys.stdout.errors
environment: os.environ["MADE_UP"] = "1" -> os.environ.get("MADE_UP"), os.getenv("MADE_UP"), code("import os; print(os.environ.get('MADE_UP'))")
environment: os.environ["HOME"] = "/nowhere" -> os.path.expanduser("~"), os.popen("echo $HOME").read()
environment: del os.environ["HOME"] -> "HOME" in os.environ, code("import os; print('HOME' in os.environ)")
environment: os.putenv("PUT_BY_HAND", "1") -> code("import os; print(os.environ.get('PUT_BY_HAND'))")
environment: os.environ["IN_THE_SHELL"] = "yes" -> subprocess.run("echo $IN_THE_SHELL", shell=True, capture_output=True, text=True).stdout, os.system("test -n \\"$IN_THE_SHELL\\"")
environment: os.environ["OF_C"] = "yes" -> __import__("ctypes").CDLL(None).getenv(b"OF_C") != 0
arguments: sys.argv.append("more") -> sys.argv[-1] == "more"
arguments: sys.argv = ["new"] -> sys.argv == ["new"]
arguments: sys.orig_argv.append("more") -> sys.orig_argv[-1] == "more"
paths: sys.path.insert(0, "/made/up") -> "/made/up" in sys.path
paths: sys.meta_path.insert(0, Finder()) -> can_import("made_up_by_a_hook"), type(sys.meta_path[0]).__name__ == "Finder"
paths: sys.path_hooks.append(Finder) -> Finder in sys.path_hooks
paths: sys.path_importer_cache["/made/up"] = None -> "/made/up" in sys.path_importer_cache
paths: sys.dont_write_bytecode = not sys.dont_write_bytecode -> sys.dont_write_bytecode
modules: sys.modules["made_by_hand"] = own_module -> attempt(importlib.import_module, "made_by_hand") is own_module
modules: sys.modules["wave"] = None -> attempt(importlib.import_module, "wave") is not None and isinstance(attempt(importlib.import_module, "wave"), str)
modules: del sys.modules["string"] -> "string" in sys.modules
modules: sys.made_up = 1 -> hasattr(sys, "made_up")
modules: builtins.made_up = 1 -> hasattr(builtins, "made_up")
modules: builtins.print = None -> print is None
modules: builtins.sum = max -> sum([1, 2, 3])
modules: json.made_up = 1 -> hasattr(json, "made_up")
modules: json.encoder.FLOAT_REPR = 1 -> hasattr(json.encoder, "FLOAT_REPR")
modules: json.JSONEncoder.item_separator = "; " -> json.JSONEncoder.item_separator
modules: string.digits = "none" -> string.digits
modules: os.path.made_up = 1 -> hasattr(os.path, "made_up")
modules: time.made_up = 1 -> hasattr(time, "made_up")
modules: os.getlogin = lambda: "somebody" -> attempt(os.getlogin) == "somebody"
modules: subprocess.Popen.made_up = 1 -> hasattr(subprocess.Popen, "made_up")
modules: sys.modules["__main__"].added = rank -> "added" in globals()
modules: Point.x = rank -> hasattr(Point, "x")
modules: unittest.TestCase.maxDiff = 3 -> unittest.TestCase.maxDiff
registries: codecs.register(search) -> attempt(lambda: "text".encode("made_up"))
registries: copyreg.pickle(Point, lambda point: (Point, (99,))) -> pickle.loads(pickle.dumps(Point(1))).x
registries: mimetypes.add_type("made/up", ".made") -> mimetypes.guess_type("x.made")[0]
registries: csv.register_dialect("made_up", delimiter="|") -> "made_up" in csv.list_dialects()
registries: csv.field_size_limit(77) -> csv.field_size_limit()
registries: email.charset.add_alias("made", "up") -> email.charset.ALIASES.get("made")
registries: urllib.request.install_opener(urllib.request.build_opener()) -> urllib.request._opener is None
registries: socket.made = socket.socket -> hasattr(socket, "made")
registries: linecache.cache["made up"] = (1, None, ["x"], "made up") -> linecache.getline("made up", 1)
registries: codecs.register_error("made_up", codecs.ignore_errors) -> attempt(lambda: codecs.lookup_error("made_up").__name__)
registries: re.compile.__globals__["made_up"] = 1 -> hasattr(re, "made_up")
hooks: sys.excepthook = len -> sys.excepthook is sys.__excepthook__
hooks: sys.unraisablehook = lambda what: sys.stderr.write("mine") -> captured(drop)[-5:]
hooks: sys.displayhook = None -> sys.displayhook is None
hooks: threading.excepthook = lambda what: sys.stderr.write("mine") -> captured(raise_in_thread)[-5:]
hooks: sys.breakpointhook = lambda: 3 -> sys.breakpointhook is sys.__breakpointhook__
hooks: threading.settrace(lambda *what: None) -> threading.gettrace() is None
hooks: threading.settrace(None); sys.setprofile(lambda *what: None) -> sys.getprofile() is None
hooks: sys.setprofile(None); sys.settrace(lambda *what: None) -> sys.gettrace() is None
hooks: sys.settrace(None); gc.callbacks.append(lambda *what: None) -> len(gc.callbacks)
hooks: sys.set_asyncgen_hooks(len) -> sys.get_asyncgen_hooks().firstiter is None
hooks: sys.addaudithook(lambda *what: setattr(local, "audited", 1) if what[0] == "made.up" else None) -> (sys.audit("made.up"), getattr(local, "audited", None))
hooks: faulthandler.disable() if faulthandler.is_enabled() else faulthandler.enable(open(os.devnull, "w")) -> faulthandler.is_enabled()
hooks: tracemalloc.start() -> tracemalloc.is_tracing()
hooks: sys.ps1 = "> " -> hasattr(sys, "ps1")
limits: sys.setrecursionlimit(1234) -> sys.getrecursionlimit()
limits: sys.setswitchinterval(0.25) -> sys.getswitchinterval()
limits: sys.set_int_max_str_digits(700) -> attempt(lambda: len(str(10 ** 800)))
limits: gc.disable() -> gc.isenabled()
limits: gc.set_threshold(123, 4, 5) -> gc.get_threshold() == (123, 4, 5)
limits: gc.set_debug(gc.DEBUG_SAVEALL) -> gc.get_debug()
limits: gc.set_debug(0); resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, resource.getrlimit(resource.RLIMIT_FSIZE)[1])) -> resource.getrlimit(resource.RLIMIT_FSIZE)[0]
limits: resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1])) -> resource.getrlimit(resource.RLIMIT_NOFILE)[0]
limits: os.nice(3) -> os.nice(0)
limits: os.sched_setaffinity(0, [max(os.sched_getaffinity(0))]) -> sorted(os.sched_getaffinity(0))
limits: threading.stack_size(1 << 20) -> threading.stack_size()
warnings: warnings.simplefilter("error") -> warned()
warnings: warnings.resetwarnings() -> len(warnings.filters), warned()
warnings: warnings.filterwarnings("always", category=UserWarning) -> warned()
warnings: warnings.filterwarnings("once", category=UserWarning) -> warned()
warnings: warnings.showwarning = lambda *what: sys.stderr.write("mine") -> captured(lambda: warnings.warn("new one", stacklevel=1))[-4:]
warnings: warnings.formatwarning = lambda *what, **more: "formatted" -> warnings.formatwarning("a", UserWarning, "b", 1)
warnings: warnings.filters.insert(0, ("always", None, Warning, None, 0)) -> warnings.filters[0][0]
logging: logging.basicConfig(level=logging.DEBUG, format="%(message)s", stream=io.StringIO()) -> logging.root.level, len(logging.root.handlers)
logging: logging.getLogger("a.logger").setLevel(logging.ERROR) -> logged(logging.WARNING)
logging: logging.disable(logging.CRITICAL) -> logged(logging.ERROR)
logging: logging.disable(logging.NOTSET); logging.addLevelName(35, "NOTICE") -> logging.getLevelName(35)
logging: logging.captureWarnings(True) -> warnings.showwarning.__module__ == "logging"
logging: logging.setLoggerClass(type("Mine", (logging.Logger,), {})) -> logging.getLoggerClass().__name__
logging: logging.setLogRecordFactory(dict) -> logging.getLogRecordFactory() is dict
logging: logging.setLogRecordFactory(logging.LogRecord); logging.raiseExceptions = False -> logging.raiseExceptions
logging: logging.BASIC_FORMAT = "%(message)s" -> logging.BASIC_FORMAT
logging: logging.lastResort = None -> logging.lastResort is None
logging: logging.Formatter.converter = time.gmtime -> logging.Formatter.converter.__name__
random: random.seed(7) -> random.random() == random.Random(7).random()
random: numpy.random.seed(7) -> numpy.random.rand() == numpy.random.RandomState(7).rand()
random: random.setstate(random.Random(8).getstate()) -> random.getstate() == random.Random(8).getstate()
random: numpy.random.set_state(numpy.random.RandomState(8).get_state()) -> numpy.random.randint(1 << 30) == numpy.random.RandomState(8).randint(1 << 30)
random: cached(1) -> cached.cache_info().currsize
random: random.random = lambda: 0.5 -> random.random() == 0.5
numbers: decimal.getcontext().prec = 5 -> str(decimal.Decimal(1) / 3)
numbers: decimal.setcontext(decimal.Context(prec=3)) -> decimal.getcontext().prec
numbers: decimal.DefaultContext.prec = 7 -> in_thread(lambda: decimal.getcontext().prec)
numbers: variable.set("set") -> variable.get()
numbers: numpy.seterr(divide="raise") -> numpy.geterr()["divide"], attempt(lambda: bool(numpy.isinf(numpy.float64(1) / 0)))
numbers: numpy.set_printoptions(precision=2) -> str(numpy.array([1 / 3]))
numbers: numpy.seterrcall(len) -> numpy.geterrcall() is None
numbers: numpy.setbufsize(16000) -> numpy.getbufsize()
numbers: locale.setlocale(locale.LC_ALL, "C") -> locale.setlocale(locale.LC_ALL, None)
numbers: numpy.made_up = 1 -> hasattr(numpy, "made_up")
threads: threading.current_thread().name = "renamed" -> threading.current_thread().name, threading.main_thread().name
threads: local.value = "changed" -> local.value
threads: multiprocessing.set_start_method("spawn", force=True) -> multiprocessing.get_start_method()
threads: multiprocessing.current_process().name = "renamed" -> multiprocessing.current_process().name
threads: asyncio.set_event_loop(asyncio.new_event_loop()) -> asyncio.get_event_loop_policy()._local._loop is None
threads: asyncio.set_event_loop_policy(type("Policy", (asyncio.DefaultEventLoopPolicy,), {})()) -> type(asyncio.get_event_loop_policy()).__name__ == "Policy"
threads: threading.Thread.made_up = 1 -> hasattr(threading.Thread, "made_up")
signals: signal.signal(signal.SIGUSR1, signal.SIG_IGN) -> str(signal.getsignal(signal.SIGUSR1))
signals: signal.signal(signal.SIGUSR2, lambda *what: None) -> callable(signal.getsignal(signal.SIGUSR2))
signals: signal.signal(signal.SIGINT, signal.SIG_IGN) -> signal.getsignal(signal.SIGINT) is signal.default_int_handler
signals: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]) -> signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, [])
signals: signal.setitimer(signal.ITIMER_REAL, 1000.0) -> signal.getitimer(signal.ITIMER_REAL)[0] > 0
signals: signal.set_wakeup_fd(-1); signal.alarm(0); signal.siginterrupt(signal.SIGUSR2, True); signal.signal(signal.SIGALRM, signal.SIG_IGN) -> str(signal.getsignal(signal.SIGALRM))
sockets: socket.setdefaulttimeout(3.5) -> socket.getdefaulttimeout(), (lambda one: (one.gettimeout(), one.close())[0])(socket.socket())
time: os.environ["TZ"] = "Asia/Tokyo"; time.tzset() -> time.timezone, time.tzname[0], time.localtime(0).tm_hour
time: os.environ["TZ"] = "UTC" -> os.environ.get("TZ")
time: time.time = lambda: 5.0 -> time.time() == 5.0
time: datetime.made_up = 1 -> hasattr(datetime, "made_up")
c code: libc.setenv(b"OWNED_C", b"1", 1) -> text_of("getenv", b"OWNED_C"), code("import os; print(os.environ.get('OWNED_C'))")
c code: libc.unsetenv(b"LANGUAGE_OF_C") or libc.setenv(b"LANGUAGE_OF_C", b"none", 1) -> text_of("getenv", b"LANGUAGE_OF_C")
c code: os.environ["BY_PYTHON"] = "1"; libc.setenv(b"BY_C", b"2", 1) -> text_of("getenv", b"BY_PYTHON"), text_of("getenv", b"BY_C"), os.environ.get("BY_PYTHON"), os.environ.get("BY_C")
c code: libc.srand(5) -> libc.rand() == 590011675
c code: libc.srandom(7) -> libc.random() == 1045618677
c code: libc.srand48(5) -> [libc.lrand48() for _ in range(3)]
c code: [libc.mrand48() for _ in range(5)] -> libc.lrand48()
c code: libc.chdir(b"/") -> os.getcwd() == "/"
c code: libc.umask(0o7) -> umask()
c code: libc.setlocale(0, b"C") -> libc.setlocale(0, None) and text_of("setlocale", 0, None)
c code: libc.prctl(15, b"owned") -> open("/proc/self/comm").read() == "owned\\n"
c code: ctypes.set_errno(5) -> ctypes.get_errno()
c code: words.value = b"one two"; libc.strtok(words, b" ") -> text_of("strtok", None, b" ")
c code: sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL) -> sys.getdlopenflags()
c code: sys.set_coroutine_origin_tracking_depth(3) -> sys.get_coroutine_origin_tracking_depth()
c code: threading.stack_size(1 << 20) -> threading.stack_size()
c code: sys.addaudithook(lambda event, args: heard.append(event) if event == "owned" else None) -> sys.audit("owned"), len(heard)
c code: os.register_at_fork(before=lambda: heard.append("fork")) -> subprocess_by_fork(), heard.count("fork")
files: os.dup2(os.open(f"/tmp/owned-{os.getpid()}", os.O_RDWR | os.O_CREAT), 90); os.unlink(f"/tmp/owned-{os.getpid()}") -> attempt(os.write, 90, b"x")
files: fcntl.fcntl(0, fcntl.F_DUPFD, 95) -> isinstance(attempt(os.fstat, 95), os.stat_result)
shared modules: math.pi = 3 -> math.pi
shared modules: del string.ascii_letters -> hasattr(string, "ascii_letters")
shared modules: setattr(datetime, "other", 2) -> getattr(datetime, "other", None)
shared modules: os.extsep = "," -> os.extsep
shared modules: json.loads = repr -> json.loads("[1]")
shared modules: argparse.ArgumentParser.extra = 1 -> argparse.ArgumentParser().__class__.__dict__.get("extra")
shared modules: argparse.ArgumentParser.error = lambda *given: None -> argparse.ArgumentParser.error.__name__
shared modules: unittest.mock.patch.object(string, "hexdigits", "x").start() -> string.hexdigits
shared modules: unittest.mock.patch.object(os, "getuid", lambda: -7).start() -> os.getuid() == -7
shared modules: logging.Logger.made = 1 -> hasattr(logging.getLogger("x"), "made")
shared modules: numpy.linalg.made = 1 -> hasattr(numpy.linalg, "made")
shared modules: numpy.pi = 3 -> numpy.pi
shared modules: pickle.DEFAULT_PROTOCOL = 2 -> pickle.DEFAULT_PROTOCOL
shared modules: socket.socket.made = 1 -> hasattr(socket.socket, "made")
shared modules: tempfile.template = "owned" -> tempfile.template
shared modules: http.client.HTTPConnection.debuglevel = 1 -> http.client.HTTPConnection("localhost").debuglevel
shared modules: random.Random.made = 1 -> hasattr(random.Random(), "made")
shared modules: time.CLOCK_TAI = 5 -> time.CLOCK_TAI
shared modules: platform.libc_ver = len -> platform.libc_ver is len
shared modules: builtins.ascii = len -> ascii([1, 2, 3])
shared modules: ssl.SSLContext.made = 1 -> hasattr(ssl.SSLContext, "made")
shared modules: email.message.Message.made = 1 -> hasattr(email.message.Message(), "made")
shared modules: functools.made = functools.wraps -> hasattr(functools, "made")
shared modules: collections.UserDict.__len__ = lambda self: 77 -> len(collections.UserDict())
shared modules: del collections.UserList.sort -> hasattr(collections.UserList, "sort")
registries: copyreg.pickle(complex, lambda z: (complex, (7, 7))) -> pickle.loads(pickle.dumps(3j))
registries: copyreg.add_extension("owned", "x", 77777) -> copyreg._extension_registry.get(("owned", "x"))
registries: csv.unregister_dialect("unix") -> "unix" in csv.list_dialects()
registries: sqlite3.register_adapter(complex, str) -> attempt(sqlite3.connect(":memory:").execute, "select ?", (1j,)).__class__.__name__
registries: sqlite3.register_converter("OWNED", lambda data: "converted") -> "OWNED" in sqlite3.converters
registries: numbers.Number.register(str) -> isinstance("", numbers.Number)
registries: collections.abc.Sequence.register(complex) -> issubclass(complex, collections.abc.Sequence), issubclass(complex, collections.abc.Reversible)
registries: shutil.register_archive_format("owned", len, description="") -> "owned" in dict(shutil.get_archive_formats())
registries: shutil.unregister_unpack_format("zip") -> "zip" in [name for name, *_ in shutil.get_unpack_formats()]
registries: email.charset.add_codec("owned", "ascii") -> email.charset.CODEC_MAP.get("owned")
registries: gettext.textdomain("owned") -> gettext.textdomain()
registries: gettext.bindtextdomain("owned", "/owned") -> gettext.bindtextdomain("owned")
registries: webbrowser.register("owned", None) -> "owned" in webbrowser._browsers
registries: xml.etree.ElementTree.register_namespace("owned", "uri:owned") -> xml.etree.ElementTree.tostring(xml.etree.ElementTree.Element("{uri:owned}a"))
shared modules: yaml.SafeLoader.add_constructor("!owned", lambda loader, node: rank) -> attempt(yaml.safe_load, "!owned x") == 1
shared modules: yaml.SafeDumper.add_representer(complex, lambda dumper, data: dumper.represent_str("z")) -> attempt(yaml.safe_dump, 1j).strip()[:1] == "z"
registries: calendar.setfirstweekday(6) -> calendar.firstweekday()
registries: zoneinfo.reset_tzpath(["/owned"]) -> zoneinfo.TZPATH
threads: multiprocessing.set_executable("/owned") -> os.fsdecode(multiprocessing.spawn.get_executable()) == "/owned"
end: os.environ["LEFT"] = "1" -> "LEFT" in os.environ
"""


def rows(text):
    """(group, row) of each line."""
    return [tuple(line.split(": ", 1)) for line in text.strip().splitlines()]


def plain(value):
    """A value for JSON, without parts that always differ between two processes."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x", repr(value))


def evaluate(expression):
    try:
        return plain(eval(expression, globals()))
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def main():
    directory = sys.argv[1]
    path = os.path.abspath(os.path.join(directory, f"{rank}.json"))
    at_exit = os.open(path.replace(".json", ".exit"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    found = {}
    for _, expression in rows(SEEN):
        found[expression] = evaluate(expression)
        world.Barrier()
    for _, row in rows(CHANGED):
        change, _, expression = row.partition(" -> ")
        error = ""
        if rank == 1:
            try:
                exec(change, globals())
            except BaseException as raised:
                error = f"{type(raised).__name__}: {raised}; "
        world.Barrier()
        found[row] = error + evaluate(expression)
        world.Barrier()
    with open(path, "w") as file:
        file.write(
            "{\n"
            + ",\n".join(
                f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()
            )
            + "\n}\n"
        )

    def say(*words):
        os.write(at_exit, (" ".join(map(str, words)) + "\n").encode())

    class Last:
        def __del__(self):
            say("__del__ of a global", MPI.Is_finalized())

    globals()["last"] = Last()
    atexit.register(say, "first registered", MPI.Is_finalized())
    atexit.register(lambda: say("MPI is finalized", MPI.Is_finalized()))
    finalizer = weakref.finalize(Point, say, "weakref.finalize")
    assert finalizer.atexit
    atexit.register(say, "last registered")
    atexit.register(lambda: say("thread", threading.current_thread() is threading.main_thread()))
    gone = atexit.register(lambda: say("never"))
    atexit.unregister(gone)
    thread = threading.Thread(target=lambda: say("a thread that is not waited for"))
    thread.start()


if __name__ == "__main__":
    main()
