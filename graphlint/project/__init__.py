"""The project: facts of all files, joined into definitions, buffers, calls, regions and timelines."""

from __future__ import annotations

from graphlint.project.context import describe
from graphlint.project.load import load
from graphlint.project.project import Project

__all__ = ["Project", "describe", "load"]
