"""Pictures of the pages as readers see them: `python docs/screenshots.py FOLDER`.

Writes a picture of some pages of the site, of the help, of the page of a run (also of a million
events, and of two runs), of an animation and of a lesson: on a screen and on a telephone, light and
dark. Needs Chromium and the extra `docs`; a lesson needs nbconvert and ipykernel, too. Look at them
after a change of `conf.py`, `site/site.css` or the page of a run.

`python docs/screenshots.py docs/pictures --page view --page animation` writes the pictures that the
pages show. Then README.md has to show what `--explain` has printed of this run.
"""

from __future__ import annotations

import argparse
import html
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGES = {
    "front": "index.html",
    "tutorial": "start/tutorial.html",
    "options": "reference/options.html",
    "diagnostics": "reference/diagnostics.html",
}
SCREENS = {
    "screen": (1280, 900),
    "telephone": (390, 844),
    "picture": (1440, 634),
    "wide": (1240, 440),
    "long": (1280, 2400),
    "long-telephone": (390, 3000),
}
KINDS = {
    "help": ("screen",),
    "view": ("picture",),
    "animation": ("wide",),
    "run": ("long", "long-telephone"),
    "comparison": ("long", "long-telephone"),
    "million": ("screen", "telephone"),
    "lesson": ("long", "long-telephone"),
}
# Pictures that pages show, by their colour; the others have the name of their screen and colour.
NAMES = {
    "view": {"light": "view.png", "dark": "view-dark.png"},
    "animation": {"light": "animation.png", "dark": "animation-dark.png"},
}
COLOURS = {"dark": 0, "light": 1}  # Chromium's setting preferredColorScheme
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")

# A window of Chromium is at least 500 pixels wide; a frame is as narrow as a telephone.
FRAME = """<!doctype html><meta name="color-scheme" content="light dark">
<style>body {{ margin: 0 }} iframe {{ border: 0; width: {width}px; height: {height}px }}</style>
<iframe src="{page}"></iframe>
"""
# Colours of the terminal on each background.
TERMINAL = """<!doctype html><meta name="color-scheme" content="light dark">
<style>pre {{ font: 13px/1.35 monospace; margin: 1em }}</style><pre>{text}</pre>
"""

PROGRAM = """\
from mpi4py import MPI

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for step in range(5):
    comm.sendrecv(bytes(100_000 * (comm.rank + 1)), dest=right, source=left)
    comm.allreduce(step)
"""


# The run of the picture in README.md, and a part of it that shows single messages.
SHOWN = ("run", "-n", "8", "--platform", "graphene", "--explain")
PROGRAM_SHOWN = ("apps/jacobi2d.py", "--iterations", "30")
ZOOM = """<script>(function wait() {
  if (!window.pysmpi) { setTimeout(wait, 10); return; }
  for (let i = 0; i < 3; i++) document.getElementById("zoom-in").click();
})();</script>
"""

# Two algorithms of a broadcast to 16 hosts, some time after its begin.
BROADCAST = """\
from mpi4py import MPI

MPI.COMM_WORLD.Bcast(bytearray(400_000))
"""
ALGORITHMS = ("flattree", "binomial_tree")
LATER = """<script>(function wait() {
  if (window.pysmpi) pysmpi.player.go(0.62 * pysmpi.player.stages[1].to);
  else setTimeout(wait, 10);
})();</script>
"""
# 256 ranks with a million events.
MILLION = """\
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
data, back = np.zeros(1000), np.zeros(1000)
for step in range(420):
    comm.Sendrecv(data, right, recvbuf=back, source=left)
    if step % 50 == 0:
        comm.Allreduce(data, back)
"""


def run(*command: str | Path, folder: Path = DOCS.parent) -> str:
    """The output of a command that must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words[:4])}: {done.stderr[-2000:]}")
    return done.stdout


def page(name: str, folder: Path) -> Path:
    """The file of a page, which is written to a folder if it is not there."""
    python = sys.executable
    target = folder / f"{name}.html"
    if name in PAGES:
        site = folder / "site"
        if not site.exists():
            run(python, "-m", "sphinx", "-q", "-W", "-E", DOCS, site)
        return site / PAGES[name]
    if name == "view":
        if not target.exists():
            words = [python, "-m", "pysmpi", *SHOWN, "--view", str(target), *PROGRAM_SHOWN]
            subprocess.run(words, cwd=DOCS.parent, check=True)
            with target.open("a", encoding="utf-8") as stream:
                stream.write(ZOOM)
    elif name == "animation":
        (folder / "bcast.py").write_text(BROADCAST, encoding="utf-8")
        traces = []
        for algorithm in ALGORITHMS:
            traces.append(folder / f"{algorithm}.jsonl")
            run(python, "-m", "pysmpi", "run", "-q", "-n", "16", "--platform", "graphene",
                "--compute", "none", "--coll", f"bcast={algorithm}", "--trace", traces[-1],
                "bcast.py", folder=folder)  # fmt: skip
        run(python, "-m", "pysmpi", "animate", *traces, "-o", target)
        with target.open("a", encoding="utf-8") as stream:
            stream.write(LATER)
    elif name == "comparison":
        (folder / "ring.py").write_text(PROGRAM, encoding="utf-8")
        traces = [folder / f"{platform}.jsonl" for platform in ("graphene", "griffon")]
        for trace in traces:
            run(python, "-m", "pysmpi", "run", "-q", "-n", "8", "--platform", trace.stem,
                "--trace", trace, "ring.py", folder=folder)  # fmt: skip
        run(python, "-m", "pysmpi", "view", *traces, "-o", target)
    elif name == "million":
        if not target.exists():
            (folder / "many.py").write_text(MILLION, encoding="utf-8")
            run(python, "-m", "pysmpi", "run", "-q", "-n", "256", "--platform", "torus",
                "--map-by", "node", "--view", target, "many.py", folder=folder)  # fmt: skip
    elif name == "lesson":
        run(python, "-m", "nbconvert", "--execute", "--to", "html", "--output", target,
            DOCS / "lessons" / "collectives.ipynb")  # fmt: skip
    elif name == "help":
        text = run(python, "-m", "pysmpi", "run", "--help")
        target.write_text(TERMINAL.format(text=html.escape(text)), encoding="utf-8")
    else:
        (folder / "ring.py").write_text(PROGRAM, encoding="utf-8")
        run(python, "-m", "pysmpi", "run", "-n", "8", "--platform", "graphene", "-q",
            "--view", target, "ring.py", folder=folder)  # fmt: skip
    return target


def picture(chromium: str, source: Path, screen: str, colour: str, target: Path) -> None:
    """Write a picture of a page."""
    width, height = SCREENS[screen]
    with tempfile.TemporaryDirectory() as scratch:
        frame = Path(scratch) / "frame.html"
        address = source.resolve().as_uri()
        frame.write_text(FRAME.format(page=address, width=width, height=height), encoding="utf-8")
        run(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--run-all-compositor-stages-before-draw",
            "--allow-file-access-from-files", f"--user-data-dir={scratch}/profile",
            f"--blink-settings=preferredColorScheme={COLOURS[colour]}",
            "--virtual-time-budget=3000", f"--window-size={max(width, 500)},{height}",
            f"--screenshot={target}", frame.as_uri())  # fmt: skip


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s FOLDER [--page NAME] ...")
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    names = (*PAGES, "run", "comparison", "million", "help")
    more = (*names, "view", "animation", "lesson")
    parser.add_argument("--page", action="append", choices=more, help="only this page")
    options = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        sys.exit(f"no browser: expected one of the commands {', '.join(CHROMIUM)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.page or names:
            source = page(name, Path(scratch))
            for screen in KINDS.get(name, ("screen", "telephone")):
                for colour in COLOURS:
                    target = options.folder.resolve() / f"{name}-{screen}-{colour}.png"
                    if name in NAMES:
                        target = target.with_name(NAMES[name][colour])
                    picture(chromium, source, screen, colour, target)
                    print(target)


if __name__ == "__main__":
    main()
