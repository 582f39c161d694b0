"""Triton kernels as symbolic summaries: which lanes of which pointer a kernel reads and writes, with what value, and how it can end."""

from graphlint.kernel_models.build import build
from graphlint.kernel_models.coverage import Coverage, Fill, Interval, coverage
from graphlint.kernel_models.derefs import subtractions

__all__ = ["Coverage", "Fill", "Interval", "build", "coverage", "subtractions"]
