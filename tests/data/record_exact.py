"""Records SMPI's predictions for point-to-point patterns that start at time 0.

    python tests/data/record_exact.py [exact | models]

Writes `p2p_exact.jsonl.gz` and `p2p_models.jsonl.gz`, or one of them, beside this program.  Every
figure comes from a smpirun of its own, so no rank's clock has to be aligned and the figures are
exact to all their digits.  Needs SMPI (Debian: libsimgrid-dev).
"""

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLATFORMS = ("flat", "shared_backbone", "graphene", "fat_tree", "torus", "dragonfly")
MODELS = ("default", "hybrid")
RANKS = (5, 16)
SIZES = (1, 1421, 65536, 400000)  # eager and detached, at the thresholds, rendezvous
PATTERNS = (
    "pingpong",
    "send_late_recv",
    "late_send_recv",
    "ssend_late_recv",
    "isend_wait",
    "ring",
    "pairs",
    "far_pairs",
    "oneway_far",
    "incast",
    "fanout",
    "halo",
    "wave",
    "staggered",
    "anysource",
)
# SimGrid's options of each configuration of p2p_models.jsonl.gz.
CONFIGURATIONS = {
    "cm02": ("cpu/optim:TI", "network/model:CM02"),
    "lv08": ("cpu/optim:TI", "network/model:LV08"),
    "ib": ("cpu/optim:TI", "network/model:IB"),
}
MODEL_PLATFORMS = ("flat", "graphene")


class Smpi:
    """SMPI and the compiled patterns, in a folder for its files."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.program = self.folder / "patterns"
        command = ["smpicc", "-O2", HERE / "patterns.c", "-o", self.program]
        subprocess.run(command, check=True, timeout=120)

    def seconds(self, platform, model, ranks, pattern, size, options=()):
        """Each rank's seconds of a pattern on one of the machines."""
        step = 144 // ranks if platform == "graphene" else 1
        prefix = "graphene" if platform == "graphene" else "n"
        hosts = self.folder / "hosts.txt"
        hosts.write_text("".join(f"{prefix}-{rank * step}\n" for rank in range(ranks)))
        machine = HERE / "platforms" / f"{platform}.{model}.xml"
        command = ["smpirun", "-np", str(ranks), "-platform", str(machine)]
        command += ["-hostfile", str(hosts), "--log=root.thres:critical"]
        for option in ("smpi/simulate-computation:no", "smpi/wtime:0", *options):
            command.append(f"--cfg={option}")
        command += [str(self.program), pattern, str(size)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
        return [float(line) for line in done.stdout.split()]


def rows(smpi, platforms, configuration=""):
    """All cases of the platforms, with the options of a configuration."""
    for platform in platforms:
        for ranks in RANKS:
            for model in MODELS:
                for pattern in PATTERNS:
                    for size in SIZES:
                        options = CONFIGURATIONS[configuration] if configuration else ()
                        row = {"platform": platform, "model": model}
                        if configuration:
                            row["configuration"] = configuration
                        row |= {"pattern": pattern, "ranks": ranks, "bytes": size}
                        row["seconds"] = smpi.seconds(
                            platform, model, ranks, pattern, size, options
                        )
                        yield row


def write(name, found):
    """One JSON object a line."""
    # No time stamp in the archive: the same figures make the same file.
    with gzip.GzipFile(HERE / name, "wb", mtime=0) as file:
        for row in found:
            file.write((json.dumps(row, separators=(",", ":")) + "\n").encode())


def main(wanted) -> None:
    """Compile the C program, run every case, write the rows."""
    with tempfile.TemporaryDirectory() as folder:
        smpi = Smpi(folder)
        if "exact" in wanted:
            write("p2p_exact.jsonl.gz", rows(smpi, PLATFORMS))
        if "models" in wanted:
            found = (rows(smpi, MODEL_PLATFORMS, name) for name in CONFIGURATIONS)
            write("p2p_models.jsonl.gz", [row for part in found for row in part])


if __name__ == "__main__":
    main(sys.argv[1:] or ("exact", "models"))
