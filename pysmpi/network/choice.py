"""The model of a run and its options; the command line takes precedence over the machine.

A machine was calibrated for the model that its `network/model` names (default: hybrid). Its options
apply to this model. If the run chooses another model, the machine's overheads and protocol still
apply. The factors are then the model's own values, and those that the machine gives under the name
of this model.
"""

from __future__ import annotations

from collections.abc import Mapping

from pysmpi.errors import UsageError
from pysmpi.network.models import MODELS, Model, find, models
from pysmpi.platform.config import Settings, canonical
from pysmpi.platform.model import Platform

# SimGrid's names of models (`network/model`).
SIMGRID = {"SMPI": "hybrid", "LV08": "lv08", "CM02": "cm02", "raw": "fluid", "IB": "ib"}

DEFAULT = "hybrid"

# Options that a calibration fits to one model; other models do not use them.
FITTED = (
    "network/model",
    "network/preset",
    "network/error",
    "network/latency-factor",
    "network/bandwidth-factor",
    "network/weight-S",
    "network/crosstraffic",
    "smpi/lat-factor",
    "smpi/bw-factor",
)
# Options that choose outputs of a run; they act in its command, and not in the file of a machine.
OF_RUNS = ("tracing", "tracing/smpi", "smpi/list-leaks")
# Of model hybrid, and of SimGrid's InfiniBand, which is built on it.
HYBRIDS = {"hybrid", "ib"}
HYBRID_ONLY = {
    "smpi/lat-factor": "network/latency-factor",
    "smpi/bw-factor": "network/bandwidth-factor",
}


def choose(
    platform: Platform, cfg: Mapping[str, str], name: str | None = None
) -> tuple[Model, Settings]:
    """The model of a run and its settings.

    `name` is the value of `--model`, `cfg` are the values of `--cfg`. Raises UsageError for unknown
    names and wrong values.
    """
    config = {canonical(key, platform.source): value for key, value in platform.config.items()}
    command = {canonical(key, f"--cfg {key}"): value for key, value in cfg.items()}
    for known in platform.models:
        _check_name(known, platform)
    calibrated = model_named(config.get("network/model"), platform.source) or DEFAULT
    said = model_named(command.get("network/model"), "--cfg")
    if name is not None and said is not None and name != said:
        raise UsageError(
            f"--model {name}: found --cfg network/model:{command['network/model']}, "
            f"which is model {said}; give one of the two"
        )
    chosen = name or said or calibrated
    model = find(chosen)
    chosen = model.name
    if chosen != calibrated and not {chosen, calibrated} <= HYBRIDS:
        for key in (*FITTED, *(("network/TCP-gamma",) if chosen == "fluid" else ())):
            config.pop(key, None)
    if chosen not in HYBRIDS:
        for own, common in HYBRID_ONLY.items():
            config.pop(own, None)
            if own in command:
                command.setdefault(common, command.pop(own))
    unheard = [one for one in OF_RUNS if config.pop(one, None)]
    settings = Settings(config, platform.models.get(chosen, {}), command)
    settings.unheard += unheard
    return model, settings


def model_named(text: str | None, where: str) -> str | None:
    """The model of a value of `network/model`; None for unknown values."""
    if not text:
        return None
    if text in SIMGRID:
        return SIMGRID[text]
    if text in MODELS:
        return text
    names = ", ".join(SIMGRID)
    if text in ("Constant", "ns-3"):
        raise UsageError(f"{where}: network/model: {text} is not available; there are {names}")
    raise UsageError(f"{where}: network/model: expected one of {names}, got {text!r}")


def _check_name(name: str, platform: Platform) -> None:
    if name not in MODELS:
        raise UsageError(
            f"{platform.source}: models: expected names of models among {', '.join(models())}, got "
            f"{name!r}"
        )
