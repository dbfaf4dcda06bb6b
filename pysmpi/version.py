"""The version of pysmpi, and where it is installed."""

from __future__ import annotations

import os

__version__ = "0.1.0"

HOME = os.path.dirname(os.path.abspath(__file__))
