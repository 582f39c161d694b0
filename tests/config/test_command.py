# ruff: noqa: E501  inputs stand here as people write them
"""`graphlint config` as a user runs it: text, JSON, options, exit status, suppression, speed."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

SPEC = '{"method":"mtp","num_speculative_tokens":2}'
FLASHINFER = ("vllm", "serve", "org/m", "--attention-backend", "FLASHINFER", "--speculative-config", SPEC)


def test_the_report_shows_the_way_to_the_mode(graphlint):
    result = graphlint("config", "--vllm-version", "0.23.0", "--gpu", "sm_121", "--", *FLASHINFER)
    assert result.returncode == 1
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert "vLLM 0.23.0: FULL_AND_PIECEWISE -> PIECEWISE: piecewise graphs for all batches" in lines
    assert any(line.startswith("FULL_AND_PIECEWISE -> PIECEWISE: FLASHINFER declares UNIFORM_SINGLE_TOKEN_DECODE") for line in lines)
    assert "vllm/config/compilation.py, CompilationConfig.resolve_cudagraph_mode_and_sizes" in lines
    assert any("warning[GL602]" in line for line in lines)
    assert any(line.startswith("change: use a backend that declares ALWAYS or UNIFORM_BATCH: FLASH_ATTN") for line in lines)


def test_json_extends_schema_1(graphlint):
    result = graphlint(
        "config",
        "--vllm-version",
        "0.33.0",
        "--output-format",
        "json",
        "--",
        "vllm",
        "serve",
        "m",
        "--max-num-seqs",
        "6",
        "-cc.cudagraph_mode=FULL_DECODE_ONLY",
    )
    data = json.loads(result.stdout)
    assert data["schema"] == 1
    (deployment,) = data["deployments"]
    (resolution,) = deployment["resolutions"]
    assert resolution["effective_mode"] == "FULL_DECODE_ONLY"
    assert resolution["requested_by"] == "compilation_config.cudagraph_mode"
    assert resolution["capture_sizes"] == [1, 2, 4, 6, 8]
    assert resolution["covered_requests"] == 6
    assert data["findings"] == []
    assert result.returncode == 0


def test_facts_are_asked_for_only_when_they_decide(graphlint):
    def needs(*words: str) -> list[str]:
        result = graphlint("config", "--vllm-version", "0.27.1", "--output-format", "json", "--", "vllm", "serve", "org/m", *words)
        return json.loads(result.stdout)["deployments"][0]["resolutions"][0]["needs"]

    assert needs() == []
    assert needs("-cc.cudagraph_mode=PIECEWISE") == []
    assert needs("--attention-backend", "FLASHINFER", "--speculative-config", SPEC) == ["--gpu"]
    assert needs("-cc.cudagraph_mode=FULL") == ["--gpu"]


def test_a_model_configuration_sharpens_the_answer(tree, graphlint):
    tree(
        {
            "config.json": json.dumps(
                {"architectures": ["Qwen3NextForCausalLM"], "layer_types": ["linear_attention", "full_attention"], "num_experts": 8}
            )
        }
    )
    words = ("--vllm-version", "0.25.1", "--gpu", "H100", "--output-format", "json", "--", "vllm", "serve", "org/m")
    without = json.loads(graphlint("config", *words).stdout)["deployments"][0]["resolutions"][0]
    with_it = json.loads(graphlint("config", "--model-config", "config.json", *words).stdout)
    assert {b["name"] for b in without["backends"]} == {"FLASH_ATTN"}
    resolution = with_it["deployments"][0]["resolutions"][0]
    assert {b["name"] for b in resolution["backends"]} == {"FLASH_ATTN", "GDN_ATTN"}
    assert resolution["runner"] == "V1"
    assert [f["rule"] for f in with_it["findings"]] == ["GL614"]


def test_exit_status_and_selection(tree, graphlint):
    tree({"run.sh": "vllm serve m --enforce-eager -cc.cudagraph_mode=FULL --config=x.yaml\n", "ok.sh": "vllm serve m\n"})
    assert graphlint("config", "run.sh").returncode == 1
    assert graphlint("config", "ok.sh").returncode == 0
    assert graphlint("config", "--exit-zero", "run.sh").returncode == 0
    assert graphlint("config", "--severity", "error", "run.sh").returncode == 0
    assert graphlint("config", "missing.sh").returncode == 2
    assert graphlint("config", "--gpu", "nonsense", "run.sh").returncode == 2
    only = graphlint("config", "--select", "GL607", "--output-format", "json", "--vllm-version", "0.33.0", "run.sh")
    assert [f["rule"] for f in json.loads(only.stdout)["findings"]] == ["GL607"]
    ignored = graphlint("config", "--ignore", "GL607,GL611", "run.sh")
    assert ignored.returncode == 0
    assert graphlint("config", "--", "ls", "-l").returncode == 2


def test_findings_can_be_silenced_where_they_stand(tree, graphlint):
    tree(
        {
            "a.sh": "vllm serve m --config=x.yaml  # graphlint: ignore[GL607] rendered by the operator\n",
            "b.yaml": "services:\n  a:\n    image: vllm/vllm-openai:v0.33.0\n    # graphlint: ignore[GL6]\n    command: --model m --config=x.yaml\n",
            "c.sh": "# graphlint: ignore[GL611]\nvllm serve m --config=x.yaml\n",
        }
    )
    found = json.loads(graphlint("config", "--output-format", "json", ".").stdout)["findings"]
    assert [(f["path"], f["rule"]) for f in found] == [("c.sh", "GL607")]


@pytest.mark.parametrize("name", ["concise", "sarif", "github", "gitlab", "junit", "markdown", "html"])
def test_the_formats_of_check_are_understood(tree, graphlint, name: str):
    tree({"run.sh": "vllm serve m --config=x.yaml\n"})
    result = graphlint("config", "--output-format", name, "run.sh")
    assert result.returncode == 1
    assert "GL607" in result.stdout


def test_an_unmodelled_release_says_so(graphlint):
    newer = graphlint("config", "--vllm-version", "0.40.0", "--", "vllm", "serve", "m")
    assert "newer than the modelled releases" in newer.stdout
    older = graphlint("config", "--vllm-version", "0.8.5", "--", "vllm", "serve", "m")
    assert "older than the modelled releases" in older.stdout
    assert "FULL" not in older.stdout


def test_a_checkout_answers_for_itself(tree, graphlint):
    tree(
        {
            "co/vllm/config/__init__.py": "",
            "co/PKG-INFO": "Version: 0.33.0\n",
            "co/vllm/config/compilation.py": "class CompilationConfig:\n    _attention_ops = ['vllm::a']\n",
            "co/vllm/v1/attention/backends/registry.py": "class AttentionBackendEnum:\n    FLASH_ATTN = 'vllm.mine.Backend'\n",
            "co/vllm/mine.py": (
                "from vllm.base import AttentionMetadataBuilder, AttentionCGSupport\nclass Builder(AttentionMetadataBuilder):\n"
                "    _cudagraph_support = AttentionCGSupport.NEVER\nclass Backend:\n    @staticmethod\n    def get_builder_cls():\n        return Builder\n"
            ),
            "co/vllm/base.py": "class AttentionCGSupport: ...\nclass AttentionMetadataBuilder:\n    _cudagraph_support = None\n",
        }
    )
    result = graphlint(
        "config", "--vllm-checkout", "co", "--assume", "backend=FLASH_ATTN", "--output-format", "json", "--", "vllm", "serve", "m"
    )
    (resolution,) = json.loads(result.stdout)["deployments"][0]["resolutions"]
    assert resolution["effective_mode"] == "PIECEWISE"


def test_sglang(graphlint):
    result = graphlint(
        "config",
        "--",
        "python3",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "M",
        "--dcp-size",
        "2",
        "--cuda-graph-backend-prefill",
        "breakable",
    )
    assert "decode full / prefill breakable" in result.stdout
    assert "GL621" in result.stdout


def test_a_manifest_is_checked_without_heavy_imports(tree):
    tree(
        {
            "k8s.yaml": "spec:\n  containers:\n  - image: vllm/vllm-openai:v0.25.1\n    args: ['--model', 'm', '--enforce-eager', '-cc.cudagraph_mode=FULL']\n"
        }
    )
    code = "import sys; from graphlint.cli import main; main(['config', 'k8s.yaml'], standalone_mode=False); print('libcst' in sys.modules, 'torch' in sys.modules)"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    assert "GL611" in done.stdout
    assert seconds < 5, "a machine under load is allowed ten times the usual time"
    loaded = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=False).stderr
    assert "libcst" not in loaded
    assert "graphlint.project" not in loaded
