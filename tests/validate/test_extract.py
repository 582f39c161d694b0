"""Taking a kernel out of its file: what comes along, and what is said when something is missing."""

from __future__ import annotations

import pytest

from graphlint.validate.extract import Unsupported, extract

KERNEL = """\
import torch
from engine.triton_utils import tl, triton
from engine.consts import PAD_ID as PAD
from .helpers import clamp

WIDTH = 4
BLOCK = tl.constexpr(WIDTH * 2)


@triton.jit(do_not_specialize=["live"])
def fill_tail(
    out_ptr,  # [capacity]
    live,
    capacity=8,
    SIZE: tl.constexpr = BLOCK,
):
    lane = tl.arange(0, SIZE)
    tl.store(out_ptr + lane, clamp(PAD, live), mask=(lane >= live) & (lane < capacity))


def launch(out):
    fill_tail[(1,)](out, out.shape[0])
"""
FILES = {
    "engine/ops/fill.py": KERNEL,
    "engine/ops/helpers.py": (
        "from engine.triton_utils import tl, triton\n\n@triton.jit\ndef clamp(x, low):\n    return tl.maximum(x, low)\n"
    ),
    "engine/consts.py": "PAD_ID: int = -1\n",
    "engine/triton_utils.py": "import triton\nimport triton.language as tl\n",
}


def test_helpers_and_constants_come_along_from_other_files() -> None:
    kernel = extract("engine/ops/fill.py", "fill_tail", FILES.get)
    assert kernel.params == ["out_ptr", "live", "capacity", "SIZE"]
    assert kernel.constexprs == ["SIZE"]
    assert kernel.defaults == {"capacity": "8", "SIZE": "BLOCK"}
    assert kernel.helpers == ["clamp"]
    assert "PAD_ID = -1" in kernel.module
    assert "PAD = PAD_ID" in kernel.module
    assert "torch" not in kernel.module
    assert "def launch" not in kernel.module
    compile(kernel.module, "kernel", "exec")


def test_the_kernel_keeps_its_line() -> None:
    kernel = extract("engine/ops/fill.py", "fill_tail", FILES.get)
    assert kernel.module.split("\n")[kernel.line - 1].startswith("def fill_tail(")


def test_the_package_may_lie_below_a_folder() -> None:
    deeper = {f"src/{path}": text for path, text in FILES.items()}
    assert extract("src/engine/ops/fill.py", "fill_tail", deeper.get).helpers == ["clamp"]


@pytest.mark.parametrize(
    ("drop", "needed"), [("engine/ops/helpers.py", "clamp from .helpers"), ("engine/consts.py", "PAD_ID from engine.consts")]
)
def test_what_is_missing_is_named(drop: str, needed: str) -> None:
    files = {path: text for path, text in FILES.items() if path != drop}
    with pytest.raises(Unsupported, match=needed):
        extract("engine/ops/fill.py", "fill_tail", files.get)


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ("    x = plain(out_ptr)", "plain, a plain Python function"),
        ("    x = LOOKED_UP", "the value of LOOKED_UP"),
        ("    import os", "without import statements"),
        ("    x = nowhere", "nowhere"),
    ],
)
def test_only_kernels_and_constants_are_taken(body: str, needed: str) -> None:
    head = "import os\nimport triton\nLOOKED_UP = os.environ['X'].strip()\ndef plain(x):\n    return x\n@triton.jit\n"
    text = f"{head}def k(out_ptr):\n{body}\n"
    with pytest.raises(Unsupported, match=needed):
        extract("k.py", "k", {"k.py": text}.get)


def test_a_placeholder_for_machines_without_triton_is_passed_over() -> None:
    text = (
        "try:\n    import triton\n    import triton.language as tl\nexcept ImportError:\n    tl = Placeholder()\n"
        "@triton.jit\ndef k(p):\n    tl.store(p, 1)\n"
    )
    assert "Placeholder" not in extract("k.py", "k", {"k.py": text}.get).module


def test_the_first_autotune_configuration_gives_constexprs() -> None:
    text = (
        "import triton\nimport triton.language as tl\n"
        "@triton.autotune(configs=[triton.Config({'BLOCK': 32}, num_warps=2), triton.Config({'BLOCK': 64})], key=['n'])\n"
        "@triton.jit\ndef k(p, n, BLOCK: tl.constexpr):\n    tl.store(p + tl.arange(0, BLOCK), 1)\n"
    )
    kernel = extract("k.py", "k", {"k.py": text}.get)
    assert kernel.autotune == {"BLOCK": "32"}
    assert "autotune" not in kernel.module


def test_a_function_that_is_no_kernel_and_a_broken_file() -> None:
    with pytest.raises(Unsupported, match="no jit decorator"):
        extract("k.py", "k", {"k.py": "def k(p):\n    pass\n"}.get)
    with pytest.raises(Unsupported, match=r"k\.py to parse \(line 1"):
        extract("k.py", "k", {"k.py": "def k(:\n"}.get)
    with pytest.raises(Unsupported, match=r"the file gone\.py"):
        extract("gone.py", "k", {}.get)
