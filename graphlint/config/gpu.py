"""GPU names and what graph modes depend on: compute capability, memory, platform."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Gpu(NamedTuple):
    """A device: platform, compute capability (major, minor) on CUDA, memory in GiB (0 where the name does not say)."""

    name: str
    platform: str
    capability: tuple[int, int] | None
    memory: int = 0

    @property
    def label(self) -> str:
        """`H100 (sm_90)`."""
        return (
            f"{self.name} (sm_{self.capability[0]}{self.capability[1]})"
            if self.capability and not self.name.startswith("sm_")
            else self.name
        )


_KNOWN = {
    "V100": ((7, 0), 32),
    "T4": ((7, 5), 16),
    "RTX2080": ((7, 5), 11),
    "A100": ((8, 0), 80),
    "A800": ((8, 0), 80),
    "GA100": ((8, 0), 80),
    "A30": ((8, 0), 24),
    "A10": ((8, 6), 24),
    "A10G": ((8, 6), 24),
    "A40": ((8, 6), 48),
    "A6000": ((8, 6), 48),
    "A5000": ((8, 6), 24),
    "RTX3090": ((8, 6), 24),
    "RTX3080": ((8, 6), 10),
    "L4": ((8, 9), 24),
    "L40": ((8, 9), 48),
    "L40S": ((8, 9), 48),
    "L20": ((8, 9), 48),
    "RTX4090": ((8, 9), 24),
    "RTX6000ADA": ((8, 9), 48),
    "H100": ((9, 0), 80),
    "H800": ((9, 0), 80),
    "H20": ((9, 0), 96),
    "H200": ((9, 0), 141),
    "GH200": ((9, 0), 96),
    "B100": ((10, 0), 192),
    "B200": ((10, 0), 180),
    "GB200": ((10, 0), 186),
    "B300": ((10, 3), 288),
    "GB300": ((10, 3), 288),
    "RTX5090": ((12, 0), 32),
    "RTX5080": ((12, 0), 16),
    "RTXPRO6000": ((12, 0), 96),
    "HOPPER": ((9, 0), 0),
    "BLACKWELL": ((10, 0), 0),
    "AMPERE": ((8, 0), 0),
    "ADA": ((8, 9), 0),
    "GB10": ((12, 1), 119),
    "DGXSPARK": ((12, 1), 119),
    "THOR": ((11, 0), 128),
}
_AMD = re.compile(r"\b(MI\d{3}[AX]?|RX\d+\w*|gfx\w+|R9700|W7900)\b", re.I)


@lru_cache(maxsize=256)
def parse_gpu(text: str) -> Gpu:
    """`H100`, `2x RTX 3090`, `sm_90`, `9.0`, `MI300X`, `cpu`. Raises ValueError with the known names."""
    raw = text.strip()
    low = raw.lower()
    match = (
        re.search(r"(?:sm[_ ]?)(\d{1,2})(\d)(?!\d)", low) or re.fullmatch(r"(\d{1,2})\.(\d)", low) or re.fullmatch(r"(\d{1,2})(\d)", low)
    )
    if match:
        major, minor = int(match.group(1)), int(match.group(2))
        return Gpu(f"sm_{major}{minor}", "cuda", (major, minor))
    amd = _AMD.search(raw)
    if amd or low in ("rocm", "amd", "hip"):
        return Gpu(amd.group(1).upper() if amd else "ROCm", "rocm", None, 192 if amd else 0)
    if low in ("xpu", "intel"):
        return Gpu("XPU", "xpu", None)
    if low == "cpu":
        return Gpu("CPU", "cpu", None)
    squeezed = re.sub(r"[\s_-]|geforce|nvidia|quadro|tesla", "", low).upper()
    for name in sorted(_KNOWN, key=len, reverse=True):
        if name in squeezed:
            capability, memory = _KNOWN[name]
            stated = re.search(r"(\d{2,3})\s*gi?b", low)
            return Gpu(name, "cuda", capability, int(stated.group(1)) if stated else memory)
    raise ValueError(f"unknown GPU {raw!r}: give a name such as H100, B200, L40S, RTX4090, MI300X, or a capability such as sm_90")
