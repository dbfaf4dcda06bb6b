"""What happened in a run: the recorder of timelines and the formats it writes."""

from __future__ import annotations

from pysmpi.trace.recorder import Recorder, recorder_for, recording

__all__ = ["Recorder", "recorder_for", "recording"]
