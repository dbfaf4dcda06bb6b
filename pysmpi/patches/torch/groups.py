"""The process groups of each rank: their registry, their begin, their stores."""

from __future__ import annotations

import os
import sys
from inspect import signature
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pysmpi.isolation.loading.libraries import PatchedRun
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.communicators.libraries import OF_LIBRARIES
from pysmpi.patches.torch import stores
from pysmpi.patches.torch.backend import process_group_class
from pysmpi.patches.torch.interfaces import GroupOptions, NamedGroup
from pysmpi.patching.lookalike import like

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

NAME = "pysmpi"
BACKENDS = (NAME, "gloo", "mpi")  # for which the simulated one stands


def _empty() -> SimpleNamespace:
    return SimpleNamespace(
        default_pg=None, pg_map={}, pg_names={}, pg_group_ranks={}, pg_backend_config={},
        group_count=0, tags_to_pg={}, pg_to_tag={}, pg_coalesce_state={}, comms=[],
    )  # fmt: skip


# The registry of the process groups of a rank, which PyTorch has once for a process.
GROUPS: StateSlot[Rank, SimpleNamespace] = StateSlot(Rank, _empty)
_FIELDS = frozenset(vars(_empty()))
_numbers = count()


def install(run: PatchedRun, module: Any) -> None:
    """Replace the groups of `torch.distributed.distributed_c10d`."""
    _own_worlds(run, module)
    _own_names(run, module)
    stores.install(run, module)
    kind = process_group_class(module)

    def create(options: GroupOptions, _: object) -> object:
        """A process group of the ranks in `options`, all of which call this."""
        default = GROUPS.of(current()).default_pg
        if default is None:
            communicator = MPI.COMM_WORLD.Split(0, options.group_rank)
            if communicator.rank != options.group_rank:
                raise ValueError(
                    f"init_process_group: rank is {options.group_rank}, expected numbers from 0 "
                    f"to {communicator.size - 1}, a different one in each rank"
                )
        else:
            parent = default.communicator
            ranks = list(options.global_ranks_in_group)
            everyone = parent.Get_group()
            members = everyone.Incl(ranks)
            communicator = parent.Create_group(members)
            members.Free()
            everyone.Free()
        handle: Any = communicator
        OF_LIBRARIES.put(handle._impl, True)
        return kind(communicator)

    if NAME.upper() in module.Backend._plugins:  # of an earlier run
        plugin = module.Backend._plugins[NAME.upper()]
        module.Backend._plugins[NAME.upper()] = plugin._replace(creator_fn=create)
    else:
        module.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])
    _own_begin(run, module)


def _own_worlds(run: PatchedRun, module: Any) -> None:
    real = module._world

    class World(type(real)):  # type: ignore[misc]
        """The groups of the running rank."""

        def __getattribute__(self, name: str) -> Any:
            if name not in _FIELDS:
                return super().__getattribute__(name)
            rank = current()
            if rank.program is None:
                return getattr(real, name)
            groups = GROUPS.peek(rank)
            return getattr(_empty() if groups is None else groups, name)

        def __setattr__(self, name: str, value: object) -> None:
            rank = current()
            if name not in _FIELDS:
                super().__setattr__(name, value)
            elif rank.program is None:
                setattr(real, name, value)
            else:
                setattr(GROUPS.of(rank), name, value)

    run.patches.set(module, "_world", World())


def _own_names(run: PatchedRun, module: Any) -> None:
    """Give the groups of ranks names of their own in the registry of C++."""
    register, unregister = module._register_process_group, module._unregister_process_group
    unregister_all = module._unregister_all_process_groups
    registered: dict[str, Rank] = {}

    def _register_process_group(group_name: str, process_group: NamedGroup) -> None:
        rank = current()
        if rank.program is not None:
            group_name = f"{group_name} of rank {rank.pid} ({next(_numbers)})"
            process_group._set_group_name(group_name)
            registered[group_name] = rank
        register(group_name, process_group)

    def _unregister_process_group(group_name: str) -> None:
        registered.pop(group_name, None)
        unregister(group_name)

    def _unregister_all_process_groups() -> None:
        rank = current()
        if rank.program is None:
            unregister_all()
        for name in [name for name, owner in registered.items() if owner is rank]:
            _unregister_process_group(name)

    def close() -> None:
        for name in registered:
            unregister(name)

    functions = _register_process_group, _unregister_process_group, _unregister_all_process_groups
    for function in functions:
        real = getattr(module, function.__name__)
        run.patches.set(module, function.__name__, like(real, function))
    run.patches.call_back(close)


def _own_begin(run: PatchedRun, module: Any) -> None:
    """Let `init_process_group` and `new_group` make groups of the ranks of the run."""
    real, real_helper = module.init_process_group, module._new_process_group_helper
    arguments, helper_arguments = signature(real), signature(real_helper)

    def init_process_group(*args: object, **kwargs: object) -> object:
        rank = current()
        if rank.program is None:
            return real(*args, **kwargs)
        bound = arguments.bind(*args, **kwargs)
        bound.apply_defaults()
        values = bound.arguments
        place = _place(values)
        if rank.world.size == 1 and place[1] > 1:
            return real(*args, **kwargs)  # the others are processes of the system
        if place[1] != rank.world.size:
            raise ValueError(
                f"init_process_group: world_size is {place[1]}, but the run has "
                f"{rank.world.size} ranks: expected pysmpi run -n {place[1]}"
            )
        backend = _backend(values["backend"])
        values["backend"] = NAME
        values["rank"], values["world_size"] = place
        if values["store"] is None:
            values["store"] = stores.common(rank.world)
        values["init_method"] = None
        hook = sys.excepthook
        real(*bound.args, **bound.kwargs)
        sys.excepthook = hook  # errors of ranks are reported with their ranks anyway
        world = module._world
        world.pg_map[world.default_pg] = backend, world.pg_map[world.default_pg][1]
        return None

    def _new_process_group_helper(*args: object, **kwargs: object) -> object:
        rank = current()
        groups = None if rank.program is None else GROUPS.peek(rank)
        if groups is None:
            return real_helper(*args, **kwargs)
        bound = helper_arguments.bind(*args, **kwargs)
        backend = _backend(bound.arguments["backend"])
        bound.arguments["backend"] = module.Backend(NAME)
        result = real_helper(*bound.args, **bound.kwargs)
        if result[0] in groups.pg_map:
            groups.pg_map[result[0]] = backend, result[1]
        return result

    new = like(real, init_process_group)
    for owner in (module, sys.modules.get("torch.distributed")):
        if getattr(owner, "init_process_group", None) is real:
            run.patches.set(owner, "init_process_group", new)
    run.patches.set(
        module, "_new_process_group_helper", like(real_helper, _new_process_group_helper)
    )


def _backend(name: str | None) -> str:
    """The name of a backend that the simulated one stands for."""
    if name is None or name == "undefined":
        return "gloo"
    names = dict(part.rpartition(":")[::2] for part in name.lower().split(","))
    result = names.get("cpu", names.get("", ""))
    if result not in BACKENDS:
        raise ValueError(
            f"init_process_group: backend {name!r} is not simulated, because the tensors of "
            f"simulated ranks are in the memory of the CPU: expected {', '.join(BACKENDS)}"
        )
    return result


def _place(values: dict[str, Any]) -> tuple[int, int]:
    """The rank and the number of ranks, as PyTorch finds them."""
    rank, size = values["rank"], values["world_size"]
    query = dict(parse_qsl(urlsplit(values["init_method"] or "").query))
    own = current()
    if rank is None or rank < 0:
        rank = int(query.get("rank", os.environ.get("RANK", own.index)))
    if size is None or size < 0:
        size = int(query.get("world_size", os.environ.get("WORLD_SIZE", own.world.size)))
    return rank, size
