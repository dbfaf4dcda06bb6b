"""The cases of a seed: the words of a command, and the files that it finds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import click

from tests.fuzz.mutations import mutated, word
from tests.fuzz.samples import READERS, RECORDED

# Measurements of this computer, clusters of others, commands that run until they are stopped, and
# files that would be written elsewhere are left out. A number of ranks may be large and right.
_LEFT_OUT = frozenset(
    ("scheduler", "output", "report", "trace", "view", "record_compute", "json_file", "export",
     "nprocs", "debug", "breaks", "plot", "database", "target", "workers", "jobs", "help")
)  # fmt: skip
_COMMANDS = [
    ["run"], ["explore"], ["replay"], ["view"], ["analyse"], ["extrapolate"], ["sweep"], ["models"],
    ["collectives"], ["collectives", "draw"], ["platform", "show"], ["platform", "convert"],
    ["trace", "convert"], ["coherence", "protocols"], ["coherence", "latencies"],
    ["coherence", "pingpong"], ["coherence", "tune"], ["explain"],
]  # fmt: skip
_LAUNCHERS = [
    "-host", "-H", "-w", "-N", "-ppn", "--timeout", "--display", "-x", "-genv", "-env", "-wdir",
    "--output", "-outfile-pattern", "-configfile", "--multi-prog", "--distribution", "-c", "-m",
    "--log", "--mpi", "-map", "-trace-file", "-rankfile", "-bind-to", "--nodes", "--ntasks",
]  # fmt: skip


@dataclass
class FuzzCase:
    """The words of a command line, and the contents of files by name."""

    words: list[str]
    files: dict[str, bytes] = field(default_factory=dict)


def options_of(words: list[str]) -> list[click.Option]:
    """The options of a command that are tried."""
    from pysmpi.cli.main import command

    found: click.Command = command
    for name in words:
        assert isinstance(found, click.Group)
        context = click.Context(found)
        inner = found.get_command(context, name)
        assert inner is not None
        if not isinstance(inner, click.Group) or name == words[-1]:
            found = inner
            break
        found = inner
    return [
        one for one in found.params
        if isinstance(one, click.Option) and one.name not in _LEFT_OUT
    ]  # fmt: skip


class Cases:
    """Makes the case of each number; `recording` is a recording of a small run."""

    def __init__(self, seed: int, recording: bytes) -> None:
        self.seed = seed
        self.recording = recording
        self.options = {" ".join(words): options_of(words) for words in _COMMANDS}

    def __getitem__(self, number: int) -> FuzzCase:
        chance = random.Random(f"{self.seed}/{number}")
        draw = chance.random()
        if draw < 0.4:
            name = chance.choice(list(READERS))
            text, commands = READERS[name]
            words = [part.replace("{}", name) for part in chance.choice(commands)]
            return FuzzCase(words, {name: mutated(text.encode(), chance)})
        if draw < 0.55:
            name = "recording.jsonl"
            words = [part.replace("{}", name) for part in chance.choice(RECORDED)]
            return FuzzCase(words, {name: mutated(self.recording, chance)})
        return self._options(chance)

    def _options(self, chance: random.Random) -> FuzzCase:
        words = list(chance.choice(_COMMANDS))
        options = self.options[" ".join(words)]
        files: dict[str, bytes] = {}
        for _ in range(chance.randint(1, 3)):
            if words[0] in ("run", "explore") and chance.random() < 0.3:
                words += [chance.choice(_LAUNCHERS), word(chance)]
            elif options:
                option = chance.choice(options)
                words.append(chance.choice(option.opts))
                if not option.is_flag:
                    words.append(word(chance))
        if words[0] == "explore":
            words += ["--runs", "2"]
        if words[0] in ("run", "explore"):
            words += ["-n", chance.choice(("1", "2", "3", "0", "-1", "nan", "9" * 5000)), "ok.py"]
        elif words[0] in ("replay", "view", "analyse", "extrapolate") or words[0] == "trace":
            files["recording.jsonl"] = self.recording
            words.append("recording.jsonl")
            if words[0] == "trace":
                words.append("out.csv")
        elif words[0] == "sweep":
            words += ["good_study.yaml", "--list"]
        elif words[0] == "platform":
            words.append(chance.choice(("good.yaml", "graphene", word(chance))))
        elif words[:2] == ["collectives", "draw"]:
            words += ["bcast", "binomial_tree"]
        elif chance.random() < 0.5:
            words.append(word(chance))
        return FuzzCase(words, files)
