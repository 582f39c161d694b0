"""All recipes and every file with `vllm serve` in the 0.33.0 source release: nothing crashes, and what is reported was read by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.config.recipes import full_tree, run

pytestmark = pytest.mark.ecosystem

#: every start-up error that is reported, each confirmed against the release's own parser and fields
TRUE_ERRORS = {
    ("GL605", "examples/ray_serving/elastic_ep/serve_deepseek_v2.sh"),
    ("GL605", "recipes/models/MiniMaxAI/MiniMax-M3.1-Flash.yaml"),
    ("GL605", "recipes/models/Qwen/Qwen2.5-VL-7B-Instruct.yaml"),
    ("GL605", "recipes/models/Qwen/Qwen3-235B-A22B-Instruct-2507.yaml"),
    ("GL605", "recipes/models/deepseek-ai/DeepSeek-V4-Flash.yaml"),
    ("GL605", "recipes/models/inclusionAI/Ring-1T-FP8.yaml"),
    ("GL618", "docs/benchmarking/cli.md"),
}


def test_the_whole_release_is_read():
    result, seconds = run(full_tree())
    assert result.errors == []
    assert result.files >= 470
    assert len(result.checked) >= 3000
    assert seconds < 60, "10 s on an idle machine with two cores; a loaded one is allowed more"
    errors = {(f.rule, f.path) for f in result.findings if f.severity == "error"}
    assert errors == TRUE_ERRORS
    kinds = Counter(f.severity for f in result.findings)
    assert kinds["warning"] <= 100
