"""Mutation sites: ids, what is taken away, and what is left alone."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from bench.mutants.sites import Mutant, mutants_of_package, mutants_of_source
from bench.mutants.verdicts import verdicts
from bench.releases import Release

KERNEL = """
    @triton.jit
    def _prepare(out_ptr, slot_ptr, num_reqs, max_num_reqs, BLOCK: tl.constexpr):
        req_idx = tl.program_id(0)
        slot = tl.load(slot_ptr + req_idx)
        if slot < 0:
            return
        tl.store(out_ptr + req_idx, slot)
        if req_idx == num_reqs - 1:
            for i in range(num_reqs, max_num_reqs, BLOCK):
                tl.store(out_ptr + i, 0)
        offset = tl.maximum(slot - 1, 0)
        tl.store(out_ptr + req_idx, offset)
"""

HOST = """
    class Runner:
        def prepare(self, num_reqs, num_reqs_padded, num_tokens, mode):
            self.index.zero_()
            self.index[:num_reqs].copy_(self.fresh)
            self.seq_lens[num_reqs:].fill_(0)
            self.table[num_reqs:] = -1
            self.loc[num_reqs:].copy_(self.loc[num_reqs - 1])
            self.other.zero_()
            lens = (self.seq_lens - 1).clamp(
                min=0,
            ) + 1
            n = num_reqs_padded if mode == CUDAGraphMode.FULL else num_reqs
            if mode != CUDAGraphMode.FULL:
                tokens = num_tokens
            else:
                tokens = self.padded_tokens
            return self.index[:num_reqs], lens, n, tokens

        def init(self, mode):
            if mode.decode_mode() == CUDAGraphMode.FULL:
                mode = CUDAGraphMode.FULL_DECODE_ONLY
            else:
                mode = CUDAGraphMode.NONE
            return Manager(mode)

        def init_drafter(self, mode, supported):
            mode = CUDAGraphMode.FULL_DECODE_ONLY if supported else CUDAGraphMode.NONE
            return Manager(mode)
"""


def found(source: str) -> dict[str, Mutant]:
    return {mutant.id.partition("::")[2]: mutant for mutant in mutants_of_source(textwrap.dedent(source).encode(), "vllm/a.py")}


def spoilt(source: str, name: str) -> str:
    return found(source)[name].spoil(textwrap.dedent(source).encode()).decode()


def test_a_kernel_loses_its_padding_and_its_guards() -> None:
    assert set(found(KERNEL)) == {"_prepare::kernel:out_ptr#1", "_prepare::guard:slot#1", "_prepare::clamp:slot#1"}
    assert "tl.store(out_ptr + i, 0)" not in spoilt(KERNEL, "_prepare::kernel:out_ptr#1")
    assert spoilt(KERNEL, "_prepare::kernel:out_ptr#1").count("tl.store") == 2
    assert "return" not in spoilt(KERNEL, "_prepare::guard:slot#1")
    assert "offset = (slot - 1)" in spoilt(KERNEL, "_prepare::clamp:slot#1")


def test_host_code_loses_fills_modes_and_units() -> None:
    assert set(found(HOST)) == {
        "Runner.prepare::whole:self.index#1", "Runner.prepare::host:self.seq_lens#1", "Runner.prepare::assign:self.table#1",
        "Runner.prepare::copy:self.loc#1", "Runner.prepare::bound:self.seq_lens#1", "Runner.prepare::bound:self.table#1",
        "Runner.prepare::bound:self.loc#1", "Runner.prepare::clamp:self.seq_lens#1", "Runner.prepare::mode:num_reqs_padded#1",
        "Runner.prepare::mode:tokens#1", "Runner.prepare::unit:self.index#1", "Runner.prepare::unit:self.index#2",
        "Runner.init::gate:mode#1", "Runner.init_drafter::narrow:mode#1",
    }
    assert "self.seq_lens[num_reqs_padded:].fill_(0)" in spoilt(HOST, "Runner.prepare::bound:self.seq_lens#1")
    assert "n = (num_reqs_padded)\n" in spoilt(HOST, "Runner.prepare::mode:num_reqs_padded#1")
    assert "tokens = num_tokens" not in spoilt(HOST, "Runner.prepare::mode:tokens#1")
    assert "return self.index[:num_tokens]" in spoilt(HOST, "Runner.prepare::unit:self.index#2")
    assert "decode_mode" not in spoilt(HOST, "Runner.init::gate:mode#1")
    assert "self.other.zero_()" in spoilt(HOST, "Runner.prepare::whole:self.index#1")


@pytest.mark.parametrize("source", [KERNEL, HOST])
def test_every_mutant_parses_and_keeps_the_line_numbers(source: str) -> None:
    text = textwrap.dedent(source)
    for mutant in mutants_of_source(text.encode(), "vllm/a.py"):
        new = mutant.spoil(text.encode()).decode()
        ast.parse(new)
        assert new != text
        assert new.count("\n") == text.count("\n"), mutant.id


def test_equal_statements_are_numbered_in_source_order() -> None:
    source = """
        def reset(buffer, num_reqs):
            buffer[num_reqs:].fill_(0)
            buffer[num_reqs:].fill_(1)
    """
    assert [(one.id, one.line) for one in found(source).values()] == [
        ("vllm/a.py::reset::host:buffer#1", 3), ("vllm/a.py::reset::host:buffer#2", 4),
    ]


def test_data_is_not_an_index() -> None:
    kernel = """
        @triton.jit
        def _quantise(x_ptr, out_ptr):
            weight = tl.load(x_ptr)
            if weight < 0:
                return
            tl.store(out_ptr, tl.maximum(weight, 0))
    """
    assert found(kernel) == {}


def test_bytes_beyond_ascii_do_not_shift_an_edit() -> None:
    source = 'def reset(buffer, num_reqs):\n    note = "größer"; buffer[num_reqs:].fill_(0)\n'
    assert spoilt(source, "reset::host:buffer#1") == 'def reset(buffer, num_reqs):\n    note = "größer"; pass\n'


def test_tests_and_unreadable_files_are_left_alone(tmp_path: Path) -> None:
    fill = "def f(b, num_reqs):\n    b[num_reqs:].fill_(0)\n"
    for name, content in {"a.py": fill, "tests/b.py": fill, "c.py": "def f(:\n  num_reqs"}.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "vllm" / "d.py").write_bytes(b"num_reqs = '\xff'\n")
    assert [mutant.path for mutant in mutants_of_package(tmp_path / "vllm")] == ["vllm/a.py"]
    assert mutants_of_package(tmp_path / "vllm", only=frozenset({"vllm/z.py"})) == []


def test_verdict_lists_name_each_mutant_once() -> None:
    for release, harmful, redundant in (("vllm-0.20.0", 19, 11), ("vllm-0.33.0", 17, 10), ("sglang-0.5.23", 13, 5)):
        given = [verdict for mutant, verdict in verdicts(Release.parse(release)).items() if mutant.split("::")[2].split(":")[0] in
                 ("kernel", "host", "gate")]
        assert (given.count("harmful"), given.count("redundant")) == (harmful, redundant)
    assert verdicts(Release.parse("vllm-0.1.0")) == {}
