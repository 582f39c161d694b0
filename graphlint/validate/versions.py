"""What a verdict was reached with. Runs inside the child; imports torch and triton when they are there."""

from __future__ import annotations

import contextlib
import platform
from importlib import metadata
from typing import Any

_PACKAGES = ("torch", "triton", "numpy", "flashinfer-python", "apache-tvm-ffi")


def describe(device: str) -> dict[str, Any]:
    """{"versions": {...}, "device_name": ...} of this process."""
    import graphlint

    versions = {"graphlint": graphlint.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    name = f"Triton interpreter on {platform.machine()}"
    if device == "cuda":
        import torch

        properties = torch.cuda.get_device_properties(0)
        name = f"{properties.name} (sm_{properties.major}{properties.minor})"
        versions["cuda"] = str(torch.version.cuda)
    return {"versions": versions, "device_name": name}
