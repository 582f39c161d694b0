"""Which device a validation runs on, found without importing torch in this process."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Literal

Device = Literal["auto", "cpu", "cuda"]


def missing_packages(device: str) -> list[str]:
    """Packages that `device` needs and this environment lacks."""
    wanted = ("torch", "triton", "numpy")
    return [name for name in wanted if importlib.util.find_spec(name) is None]


def resolve(device: Device) -> Literal["cpu", "cuda"]:
    """ "auto" is cuda where an NVIDIA device node exists and is not hidden, else cpu."""
    if device != "auto":
        return device
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    present = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg") or shutil.which("nvidia-smi") is not None
    return "cuda" if present and not hidden else "cpu"
