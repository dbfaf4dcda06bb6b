"""Random numbers: every rank has its own generators, seeded from the seed of the run.

The module-level functions of `random` and `numpy.random` use one hidden generator; during a run,
each rank that draws numbers has its own. Generators without a seed (`Random()`,
`numpy.random.default_rng()`, `RandomState()`, `PCG64()`) are seeded in the same way, so that a run
is repeatable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

from pysmpi.isolation.kinds.rank_environment import RankEnvironment
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches

_SHARED = 1 << 31  # numbers of generators from here on are of shared modules


def _next_seed(environment: RankEnvironment) -> int:
    """A seed for the next generator of a rank that the program does not seed."""
    environment.generators += 1
    return (environment.distinct_seed << 32) + environment.generators


class SharedGenerators:
    """Generators that shared modules make while they are imported.

    Some rank imports them in the first run of a process and none in the next: the numbers of a rank
    do not depend on it.
    """

    def __init__(self) -> None:
        self._before: dict[RankEnvironment, int] = {}

    def begin(self) -> None:
        """The rank that is running imports a shared module."""
        environment = ranks.current().program
        if environment is not None:
            self._before[environment] = environment.generators
            environment.generators += _SHARED

    def end(self) -> None:
        """It has imported the module."""
        environment = ranks.current().program
        if environment in self._before:
            environment.generators = self._before.pop(environment)


def patch_random(patches: Patches, module: ModuleType) -> None:
    """Give every rank its own state of module `random`."""
    hidden = module._inst
    kind = module.Random
    current = ranks.current
    real_seed = kind.seed

    def seed(self: object, a: object = None, version: int = 2) -> None:
        if a is None:
            environment = current().program
            if environment is not None:
                a = _next_seed(environment)
        real_seed(self, a, version)

    seed = like(real_seed, seed)

    def own(environment: RankEnvironment) -> Any:
        generator = environment.random
        if generator is None:
            generator = environment.random = kind(environment.distinct_seed)
        return generator

    patches.set(kind, "seed", seed)
    for name, value in list(vars(module).items()):
        if getattr(value, "__self__", None) is hidden:
            patches.set(module, name, _of_rank(name, value, own))


def _of_rank(
    name: str, real: Callable[..., object], own: Callable[[RankEnvironment], object]
) -> Callable[..., object]:
    """The function `name` of a module, as a method of the generator of the rank that calls."""
    current = ranks.current

    def call(*args: object, **kwargs: object) -> Any:
        environment = current().program
        if environment is None:
            return real(*args, **kwargs)
        return getattr(own(environment), name)(*args, **kwargs)

    function = like(real, call)
    if function is call:
        call.__qualname__ = name  # where `pickle` looks for a function
    return function


def patch_numpy(patches: Patches, module: ModuleType) -> None:
    """Give every rank its own global state of `numpy.random`."""
    low = module.mtrand
    hidden = low._rand
    kind = module.RandomState
    current = ranks.current

    def own(environment: RankEnvironment) -> Any:
        state = environment.numpy_random
        if state is None:
            state = environment.numpy_random = kind(environment.distinct_seed)
        return state

    for owner in (module, low):
        for name, value in list(vars(owner).items()):
            if getattr(value, "__self__", None) is hidden and name != "seed":
                patches.set(owner, name, _of_rank(name, value, own))

    real_seed = hidden.seed

    def seed(seed: object = None) -> None:
        environment = current().program
        if environment is None:
            real_seed(seed)
        else:
            if seed is None:
                seed = Random(_next_seed(environment)).getrandbits(32)
            own(environment).seed(seed)

    real_default_rng = module.default_rng

    def default_rng(seed: object = None) -> object:
        environment = current().program
        if seed is None and environment is not None:
            seed = _next_seed(environment)
        return real_default_rng(seed)

    seed = like(module.seed, seed)
    default_rng = like(real_default_rng, default_rng)
    for owner in (module, low):
        patches.set(owner, "seed", seed)
    for owner in (module, sys.modules[real_default_rng.__module__]):
        patches.set(owner, "default_rng", default_rng)

    # Libraries such as scipy use the hidden generator directly, as `numpy.random.mtrand._rand`.
    class OfRank(kind):  # type: ignore[misc,valid-type]
        """The hidden generator of the rank that is running."""

        def __getattribute__(self, name: str) -> object:
            environment = current().program
            return getattr(hidden if environment is None else own(environment), name)

    OfRank.__name__, OfRank.__qualname__ = kind.__name__, kind.__qualname__
    OfRank.__module__ = kind.__module__
    patches.set(low, "_rand", OfRank(0))

    # The source of all generators without a seed: RandomState(), PCG64(), SeedSequence().
    source = sys.modules["numpy.random.bit_generator"]
    real_bits = source.randbits

    def randbits(k: int) -> int:
        environment = current().program
        if environment is None:
            return int(real_bits(k))
        return Random(_next_seed(environment)).getrandbits(k)

    patches.set(source, "randbits", like(real_bits, randbits))
