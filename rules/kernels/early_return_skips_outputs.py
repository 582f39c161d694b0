"""A kernel path returns after it wrote some outputs of its lane and leaves the others stale.

## What it does
Looks at every way a program of a kernel can end. A path that returns early after storing to some of the per-lane outputs, while the full
path stores to more of them, leaves the rest of that lane as an older step left it.

## Why it fails under graphs
The early return is there for padded or empty lanes: they get a length, but not the indices that go with it. The buffer is persistent, the
reader is captured for all lanes, and a kernel that takes the maximum over lanes, prefetches indices, or trusts another length reads the
stale row.

## Known problems
A reader that is proved to stop at the stored length makes the stale indices harmless; that proof is not attempted, so confidence is medium.

## Example
    tl.store(lens_ptr + i, length)
    if length == 0:
        return
    tl.store(indices_ptr + i * width + lanes, block_ids, mask=lanes < length)

## Use instead
    tl.store(lens_ptr + i, length)
    if length == 0:
        tl.store(indices_ptr + i * width + lanes, -1, mask=lanes < width)
        return
    tl.store(indices_ptr + i * width + lanes, block_ids, mask=lanes < width)

## Fix safety
Storing the sentinel for a lane without live data cannot change live lanes.

## How it is confirmed
The kernel runs with an empty lane over poisoned outputs: poison that survives in an output of that lane confirms it.

## References
vllm-project/vllm#51538 (`_compute_dspark_noncausal_swa_indices_kernel`).
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

from graphlint.api import Example, Finding, Project, Rule, lanes_witness, make_finding, point, show


def check(project: Project) -> Iterator[Finding]:
    """Exits of kernels that leave per-lane outputs of a persistent kind unwritten."""
    for skipped in project.skipped_outputs:
        condition = " and ".join(show(test) for test in skipped.conditions) or "this path"
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity="error" if skipped.is_index else "warning",
            confidence="medium",
            site=skipped.exit_site,
            buffer=skipped.pointer,
            witness=lanes_witness("requests"),
            trace=[
                point(skipped.written_site, f"`{skipped.written}` gets a value on every path"),
                point(skipped.exit_site, f"returns when {condition}"),
                point(skipped.store_site, f"`{skipped.pointer}` is only stored here, after the return"),
            ],
            message=f"returns with `{skipped.written}` stored but `{skipped.pointer}` of the same lane left as an older step wrote it",
        )


def _kernel(body: str) -> str:
    text = """
    import triton
    import triton.language as tl

    @triton.jit
    def gather(lens_ptr, indices_ptr, seq_lens_ptr, table_ptr, width, BLOCK: tl.constexpr):
        i = tl.program_id(0)
        lanes = tl.arange(0, BLOCK)
        length = tl.load(seq_lens_ptr + i)
        {body}

    class Builder:
        def build(self, num_reqs, seq_lens):
            gather[(num_reqs,)](self.lens, self.indices, seq_lens, self.table, 64, BLOCK=64)
    """
    return dedent(text).format(body=body.strip().replace("\n", "\n    "))


_STORE = "tl.store(indices_ptr + i * width + lanes, tl.load(table_ptr + lanes), mask=lanes < width)"

RULE = Rule(
    id="GL203",
    name="early-return-skips-outputs",
    summary="a path returns after writing some outputs of a lane and leaves others stale",
    severity="error",
    since="0.1.0",
    tokens=(b"triton.jit",),
    check=check,
    references=("vllm-project/vllm#51538",),
    bad=(
        Example(
            "length stored, indices not",
            _kernel(f"tl.store(lens_ptr + i, length)\nif length == 0:\n    return\n{_STORE}"),
            ("indices_ptr",),
        ),
        Example(
            "zero stored on the early path only",
            _kernel(f"if length <= 0:\n    tl.store(lens_ptr + i, 0)\n    return\ntl.store(lens_ptr + i, length)\n{_STORE}"),
            ("indices_ptr",),
        ),
        Example(
            "the shorter of two tests returns",
            _kernel(f"tl.store(lens_ptr + i, length)\nif length < 0:\n    return\n{_STORE}"),
            ("indices_ptr",),
        ),
    ),
    good=(
        Example(
            "sentinel stored before the return",
            _kernel(
                "tl.store(lens_ptr + i, length)\nif length == 0:\n    tl.store(indices_ptr + i * width + lanes, -1, mask=lanes < width)\n    return\n"
                + _STORE
            ),
        ),
        Example("near miss: the lane is skipped whole", _kernel(f"if length == 0:\n    return\ntl.store(lens_ptr + i, length)\n{_STORE}")),
        Example("no early return", _kernel(f"tl.store(lens_ptr + i, length)\n{_STORE}")),
    ),
)
