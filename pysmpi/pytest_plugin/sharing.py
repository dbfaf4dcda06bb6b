"""The modules that ranks share with the user's session, and the options that their pytest gets."""

from __future__ import annotations

from types import ModuleType

import pytest

from pysmpi.isolation.loading.rules import Rules

# pytest itself has no state of a test in its modules, except what `worker.py` exchanges.
_TOOLS = ("pytest", "_pytest", "pluggy", "hypothesis", "_hypothesis_globals",
          "_hypothesis_pytestplugin", "_hypothesis_ftz_detector", "coverage", "pytest_cov", "xdist",
          "execnet", "iniconfig", "py", "pysmpi.pytest_plugin")  # fmt: skip

# They write files, run other processes, or repeat the report of the user's session.
_BLOCKED = (
    "terminal", "terminalprogress", "xdist", "xdist.looponfail", "pytest_cov", "_cov", "lfplugin",
    "nfplugin", "stepwiseplugin", "junitxml", "pastebin", "faulthandler", "unraisableexception",
    "threadexception", "timeout", "rerunfailures", "sugar", "instafail", "html", "metadata",
    "json_report", "reportlog", "pytest_isolate_mpi", "flaky",
)  # fmt: skip

# Options that concern the whole session.
_RESET: dict[str, object] = {
    "capture": "sys", "usepdb": False, "lf": False, "failedfirst": False, "newfirst": False,
    "stepwise": False, "stepwise_skip": False, "maxfail": 0, "keyword": "", "markexpr": "",
    "deselect": None, "collectonly": False, "xmlpath": None, "pastebin": None, "log_file": None,
    "cacheclear": False, "cacheshow": None, "basetemp": None, "verbose": 0, "debug": None,
    "tx": [], "dist": "no", "numprocesses": None, "trace": False,
    "cov_source": None, "durations": None, "version": 0, "help": False,
}  # fmt: skip


def shared_modules(config: pytest.Config) -> list[str]:
    """The plugins of the session that know nothing of MPI, and pytest itself."""
    rules = Rules()
    result = set(_TOOLS)
    for plugin in config.pluginmanager.get_plugins():
        if not isinstance(plugin, ModuleType):
            continue
        root = plugin.__name__.partition(".")[0]
        file = getattr(plugin, "__file__", None) or ""
        if root in result or root == "conftest" or not rules.installed(file):
            continue
        if not rules._knows(root):
            result.add(root)
    return sorted(result)


def options_of_ranks(config: pytest.Config) -> dict[str, object]:
    """The options of the sessions in ranks."""
    given = dict(vars(config.option))
    reset = {name: value for name, value in _RESET.items() if name in given}
    if given.get("capture") == "no":
        reset["capture"] = "no"
    given.update(reset)
    given.pop("file_or_dir", None)
    given["plugins"] = [*given.get("plugins", ()), *(f"no:{name}" for name in _BLOCKED)]
    if config.inipath is not None:
        given["inifilename"] = str(config.inipath)
    given["rootdir"] = str(config.rootpath)
    return given
