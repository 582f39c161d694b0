"""The support matrix: known levels of four releases, conditions, changes, output forms, a checkout of one's own."""

from __future__ import annotations

import json

import pytest

from graphlint.config.matrix import compare, load_matrix
from graphlint.config.tables import bundled_versions, load_release

#: read from the releases' sources by hand: backend -> letters in 0.11.2, 0.19.1, 0.25.1, 0.33.0; None where the release lacks it
TABLE = {
    "FLASH_ATTN": ("A|U", "A|U", "A|U", "A|U"),
    "TRITON_ATTN": ("A", "A", "A", "A"),
    "FLASHINFER": ("U|S", "U|S", "S|U", "S|U"),
    "FLEX_ATTENTION": ("N", "N", "A", "A"),
    "TREE_ATTN": ("N", "N", None, None),
    "XFORMERS": ("N", None, None, None),
    "ROCM_ATTN": ("A", "A", "A", "A"),
    "ROCM_AITER_UNIFIED_ATTN": ("A", "A", "A", "A"),
    "ROCM_AITER_FA": ("S", "U", "U", "U"),
    "FLASHMLA": ("U", "U", "U", "U"),
    "FLASH_ATTN_MLA": ("U", "U", "U", "U"),
    "FLASHINFER_MLA": ("U", "U", "U", "A"),
    "CUTLASS_MLA": ("S", "S", "S", "S"),
    "TRITON_MLA": ("N", "N", "U", "U"),
    "TOKENSPEED_MLA": (None, None, "U", "U"),
    "ROCM_AITER_MLA": ("S", "U", "U", "U"),
    "FLASHMLA_SPARSE": ("U", "U", "U", "U"),
    "FLASHINFER_MLA_SPARSE": (None, "U", "U", "U"),
    "FLASH_ATTN_MLA_SPARSE": (None, None, "U", "U"),
    "ROCM_AITER_MLA_SPARSE": (None, "S", "S", "U"),
    "FLASHMLA_SPARSE_DSV4": (None, None, "U", "A"),
    "FLASHINFER_MLA_SPARSE_DSV4": (None, None, "U", "A"),
    "ROCM_FLASHMLA_SPARSE_DSV4": (None, None, "U", "A|U"),
    "MINIMAX_M3_SPARSE": (None, None, "U", "U"),
    "STEP5_DSA": (None, None, None, "U|S"),
    "TURBOQUANT": (None, None, "U", "U"),
    "HPC_ATTN": (None, None, "U|S", "U|S"),
    "TRITON_FLASH_ATTN": (None, None, None, "N|S"),
    "TRITON_FLASHINFER": (None, None, None, "N|S"),
    "MAMBA1": ("S", "U", "U", "U"),
    "MAMBA2": ("S", "U", "U", "U"),
    "SHORT_CONV": ("S", "U", "U", "U"),
    "LINEAR": ("N", "S", "S", "S"),
    "GDN_ATTN": ("U", "U", "U", "U"),
}


@pytest.mark.parametrize(("column", "release"), list(enumerate(["0.11.2", "0.19.1", "0.25.1", "0.33.0"])))
def test_levels_of_the_reference_releases(column: int, release: str):
    rows = {row.name: row.letters for row in load_matrix(release).rows}
    assert {name: rows.get(name) for name in TABLE} == {name: letters[column] for name, letters in TABLE.items()}


def test_every_release_has_a_table():
    known = [str(v) for v in bundled_versions()]
    assert known[0] == "0.10.1"
    assert known[-1] == "0.33.0"
    assert len(known) == 38
    for version in bundled_versions():
        tables = load_release(version)
        assert len(tables.backends) > 20
        assert len(tables.flags) > 200
        assert tables.attention_ops
        assert all(
            s.level in ("ALWAYS", "UNIFORM_BATCH", "UNIFORM_SINGLE_TOKEN_DECODE", "NEVER")
            for b in tables.backends.values()
            for s in b.support
        )


def test_levels_go_down_as_well_as_up():
    changes = {(c.what, c.name): (c.before, c.after) for c in compare(load_matrix("0.25.1"), load_matrix("0.26.0"))}
    assert changes["level", "TRITON_MLA"] == ("U", "S")
    assert changes["level", "ROCM_AITER_MLA_SPARSE"] == ("S", "U")


def test_builders_behind_no_name_are_listed():
    rows = {row.name.split(" ")[0]: row.letters for row in load_matrix("0.33.0").rows if row.kind == "builder"}
    assert rows["ChunkedLocalAttentionBuilder"] == "N"
    assert rows["DeepseekV32IndexerMetadataBuilder"] == "A|U"
    assert rows["KimiK3KDAMetadataBuilder"] == "A"


def test_results_follow_the_level():
    rows = {row.name: row.results for row in load_matrix("0.33.0").rows}
    assert rows["CUTLASS_MLA"]["FULL_AND_PIECEWISE"] == ("FULL_AND_PIECEWISE", "PIECEWISE")
    assert rows["CPU_ATTN"]["FULL"] == ("startup error", "startup error")
    assert rows["TRITON_ATTN"]["FULL"] == ("FULL", "FULL")


def test_the_command_in_all_forms(graphlint):
    text = graphlint("matrix", "0.33.0")
    assert text.returncode == 0
    assert "FlashAttention 3 or 4 or XPU" in text.stdout
    data = json.loads(graphlint("matrix", "--output-format", "json", "0.33.0").stdout)
    flash = next(b for b in data["backends"] if b["name"] == "FLASHINFER_MLA")
    assert flash["support"] == [{"level": "ALWAYS", "when": [], "at": flash["support"][0]["at"]}]
    assert flash["support"][0]["at"].startswith("vllm/v1/attention/backends/mla/flashinfer_mla.py:")
    assert graphlint("matrix", "--output-format", "html", "0.33.0").stdout.startswith("<!doctype html>")
    assert "| FLASHMLA | U |" in graphlint("matrix", "--output-format", "markdown", "0.33.0").stdout
    assert "TRITON_MLA" in graphlint("matrix", "0.25.1", "0.26.0").stdout


def test_an_unknown_release_is_a_usage_error(graphlint):
    result = graphlint("matrix", "0.99.0")
    assert result.returncode == 2
    assert "0.33.0" in result.stderr
    assert graphlint("matrix", "nowhere").returncode == 2


REGISTRY = """
from enum import Enum

class AttentionBackendEnum(Enum):
    MINE = "vllm.v1.attention.backends.mine.MineBackend"
    NONE_OF_IT = ""
"""
MINE = """
from vllm.v1.attention.backend import AttentionBackend, AttentionMetadataBuilder, AttentionCGSupport
from vllm.platforms import current_platform

def _fast():
    return current_platform.has_device_capability(90)

class MineBuilder(AttentionMetadataBuilder):
    @classmethod
    def get_cudagraph_support(cls, vllm_config, kv_cache_spec):
        spec = vllm_config.speculative_config
        if spec is None:
            return AttentionCGSupport.ALWAYS
        ok = _fast()
        for layer in kv_cache_spec:
            if layer.odd:
                ok = False
                break
        return AttentionCGSupport.UNIFORM_BATCH if ok else cls._cudagraph_support

class MineBackend(AttentionBackend):
    @staticmethod
    def get_builder_cls():
        return MineBuilder
"""
BASE = """
class AttentionCGSupport: ...
class AttentionBackend: ...
class AttentionMetadataBuilder:
    _cudagraph_support = AttentionCGSupport.NEVER

    @classmethod
    def get_cudagraph_support(cls, vllm_config, kv_cache_spec):
        return cls._cudagraph_support
"""


def test_a_checkout_is_read_directly(tree, graphlint):
    tree(
        {
            "co/vllm/config/__init__.py": "",
            "co/vllm/config/compilation.py": "class CompilationConfig:\n    _attention_ops = ['vllm::a']\n",
            "co/vllm/v1/attention/backends/registry.py": REGISTRY,
            "co/vllm/v1/attention/backends/mine.py": MINE,
            "co/vllm/v1/attention/backend.py": BASE,
            "co/PKG-INFO": "Version: 0.40.0\n",
        }
    )
    data = json.loads(graphlint("matrix", "--output-format", "json", "co").stdout)
    mine = next(b for b in data["backends"] if b["name"] == "MINE")
    assert [s["level"] for s in mine["support"]] == ["ALWAYS", "UNIFORM_BATCH", "NEVER"]
    conditions = mine["support"][1]["when"]
    assert conditions[0] == "not (vllm_config.speculative_config is None)"
    assert conditions[1] == "current_platform.has_device_capability(90) and (not layer.odd)"
    assert next(b for b in data["backends"] if b["name"] == "NONE_OF_IT")["support"] == []
