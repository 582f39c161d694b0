"""Host code writes the live prefix of a persistent buffer, a reader uses a larger bound, and nobody fills the tail in between.

## What it does
Follows every persistent buffer through one step: prefix writes (`buf[:n] = x`, `copy_`, `out=`, `_foreach_copy_`), fills, and readers,
through calls, local views, mirrored halves and attributes of other objects. A writer that ends at the live count, with a reader that goes
on to a padded count or the capacity, and no fill on the way, is reported.

## Why it fails under graphs
The replayed graph has the padded shape of its capture. It reads the rows between the live and the padded count, which hold the values of an
earlier, larger batch: a state index of a finished request, a position beyond the table, a slot that someone else owns by now.

## Known problems
Rows that a reader provably ignores (its own guard on a length that *is* padded) are reported with the severity of the buffer's meaning,
unless the reader's guard is in the same kernel. Order between two step functions that the project calls from outside is not known.

## Example
    self.idx_mapping[:num_reqs].copy_(idx_mapping)
    self.manager.run_fullgraph(desc)          # captured on self.idx_mapping[:desc.num_reqs]

## Use instead
    self.idx_mapping[:num_reqs].copy_(idx_mapping)
    self.idx_mapping[num_reqs:].fill_(-1)     # the value the readers treat as "no request"
    self.manager.run_fullgraph(desc)

## Fix safety
A tail fill beside the write touches no live lane. The value is the engine's to choose: 0 for lengths, the last offset for offsets, the
sentinel its readers test for indices.

## How it is confirmed
By running the reading kernel over the buffer as the schedule of the witness leaves it.

## References
vllm-project/vllm#47066 (`idx_mapping`), sgl-project/sglang#10892 (`positions`), vLLM 0.21.0 `_build_attention_metadata`.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent, indent

from graphlint.api import (
    BUFFER_TOKENS,
    Example,
    Finding,
    Project,
    Rule,
    decided,
    make_finding,
    severity_of,
    show,
    stale_confidence,
    stale_trace,
    stale_witness,
    who_reads,
)


def check(project: Project) -> Iterator[Finding]:
    """Stale tails whose writer is host code."""
    for stale in project.stale_tails:
        write = stale.write
        if write.effect.kernel is not None or stale.late_fills:
            continue
        buffer = write.buffer
        wrote = show(write.hi_expr) if write.hi_expr is not None else "?"
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity=severity_of(buffer),
            confidence=stale_confidence(stale),
            site=decided(stale),
            buffer=buffer.name,
            trace=stale_trace(stale),
            witness=stale_witness(stale),
            message=(
                f"`{buffer.name}` ({buffer.meaning}) is written up to `{wrote}` ({write.hi}), but {who_reads(stale)}, "
                "and nothing fills the lanes between"
            ),
        )


def _engine(step: str, captured: str = "return self.sample(self.idx_mapping[:num_reqs])", extra: str = "") -> str:
    head = """
        import torch

        class Drafter:
            def __init__(self, config, device):
                self.max_num_reqs = config.max_num_seqs
                self.idx_mapping = torch.zeros(self.max_num_reqs, dtype=torch.int32, device=device)
                self.manager = make_manager()

            def capture(self):
                self.manager.capture(self.generate)

            def generate(self, num_reqs, num_tokens):
        """
    return (
        dedent(head)
        + indent(dedent(captured).strip(), " " * 8)
        + "\n\n    def propose(self, num_reqs, idx_mapping, desc):\n"
        + indent(dedent(step).strip(), " " * 8)
        + "\n        self.manager.run_fullgraph(desc)\n"
        + indent(dedent(extra), " " * 4)
    )


_REPLAY = """import torch

class GraphRunner:
    def __init__(self, max_bs, max_num_token):
        self.seq_lens = torch.full((max_bs,), 1, dtype=torch.int32)
        self.positions = torch.zeros((max_num_token,), dtype=torch.int64)

    def replay(self, forward_batch, raw_bs, raw_num_token, bs, num_token):
        if bs != raw_bs:
            self.seq_lens.fill_(1)
        self.seq_lens[:raw_bs].copy_(forward_batch.seq_lens)
        self.positions[:raw_num_token].copy_(forward_batch.positions)
        self.backend.plan(self.seq_lens[:bs], self.positions[:num_token])
        self.graphs[bs].replay()
"""

_LIVE_READER = """
import torch

class Runner:
    def __init__(self, config):
        self.idx_mapping = torch.zeros(config.max_num_seqs, dtype=torch.int32)

    def execute_model(self, num_reqs, idx_mapping):
        self.idx_mapping[:num_reqs].copy_(idx_mapping)
        return self.sample(self.idx_mapping[:num_reqs])
"""

RULE = Rule(
    id="GL301",
    name="stale-tail",
    summary="host code writes the live prefix of a persistent buffer and a reader uses a larger bound",
    severity="error",
    since="0.1.0",
    tokens=BUFFER_TOKENS,
    check=check,
    references=("vllm-project/vllm#47066", "sgl-project/sglang#10892"),
    bad=(
        Example("prefix copy, captured reader", _engine("self.idx_mapping[:num_reqs].copy_(idx_mapping)"), ("idx_mapping",)),
        Example(
            "prefix assignment in a helper",
            _engine(
                "self._stage(num_reqs, idx_mapping)",
                extra="""
                def _stage(self, num_reqs, idx_mapping):
                    self.idx_mapping[:num_reqs] = idx_mapping
                """,
            ),
            ("idx_mapping",),
        ),
        Example(
            "the replay pads, the copy does not",
            _REPLAY,
            ("positions",),
        ),
    ),
    good=(
        Example("tail filled", _engine("self.idx_mapping[:num_reqs].copy_(idx_mapping)\nself.idx_mapping[num_reqs:].fill_(-1)")),
        Example(
            "tail filled through a local view of the buffer",
            _engine(
                """
                self.idx_mapping[:num_reqs].copy_(idx_mapping)
                view = self.idx_mapping[: desc.num_reqs]
                view[num_reqs:].fill_(-1)
                """
            ),
        ),
        Example("whole buffer filled first", _engine("self.idx_mapping.fill_(-1)\nself.idx_mapping[:num_reqs].copy_(idx_mapping)")),
        Example(
            "near miss: the callee fills the tail",
            _engine(
                "self.idx_mapping[:num_reqs].copy_(idx_mapping)\nself._pad(num_reqs)",
                extra="""
                def _pad(self, num_reqs):
                    self.idx_mapping[num_reqs:] = -1
                """,
            ),
        ),
        Example(
            "near miss: nobody reads past the live rows",
            _LIVE_READER,
        ),
    ),
)
