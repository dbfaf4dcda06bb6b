"""A headless Chromium, driven over a pipe with the DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync --mute-audio "
    "--remote-debugging-pipe --force-device-scale-factor=1"
).split()
PATIENCE = 120.0  # seconds for an answer


def find():
    """The path of a browser, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One page of a browser; a context manager. `errors` are those of its console."""

    def __init__(self, directory, width=1440, height=1000):
        self.size = width, height
        self.directory = directory
        self.errors = []
        self.number = 0
        self.waiting = b""

    def __enter__(self):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", find(), *FLAGS, f"--user-data-dir={self.directory}",
             f"--window-size={self.size[0]},{self.size[1]}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.read, self.write = ours_in, ours_out
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        width, height = self.size
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        return self

    def __exit__(self, *error):
        os.close(self.write)
        os.close(self.read)
        self.process.terminate()
        self.process.wait(20)

    def send(self, method, **params):
        """Call a method of the protocol; return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data) :]
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.note(answer)
        raise TimeoutError(method)

    def receive(self):
        while b"\0" not in self.waiting:
            if not select.select([self.read], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.read, 1 << 20)
            assert got, "the browser has ended"
            self.waiting += got
        message, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(message)

    def note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str([one.get("value") for one in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    def open(self, path):
        """Show a file; returns when its script has run."""
        self.send("Page.navigate", url=f"file://{path}")
        end = time.monotonic() + PATIENCE
        while not self.run("window.pysmpi !== undefined"):
            assert time.monotonic() < end and not self.errors, self.errors
            time.sleep(0.05)

    def run(self, expression):
        """The value of an expression of JavaScript, awaited if it is a promise."""
        result = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def move(self, x, y, kind="mouseMoved", **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
            )

    def picture(self, path, whole=False):
        """Write a screenshot (PNG)."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(data["data"]))
