# ruff: noqa: E501  inputs stand here as people write them
"""What people really write: every format gives the same deployment, at its own lines."""

from __future__ import annotations

import pytest

from graphlint.config.check import Result

SPEC = '{"method":"mtp","num_speculative_tokens":2}'


def only(result: Result):
    assert not result.errors
    assert len(result.checked) == 1, [c.deployment for c in result.checked]
    return result.checked[0]


def settings(result: Result) -> dict[str, object]:
    return {name: s.value for name, s in only(result).resolved[0].merged.values.items()}


def test_shell_continuations_arrays_variables_and_defaults(check):
    result = check(
        """#!/bin/bash
set -euo pipefail
MODEL=${MODEL:-org/model}
declare -a args
args=(--attention-backend FLASHINFER)
args+=(--speculative-config "{\\"method\\":\\"mtp\\",\\"num_speculative_tokens\\":${N:-2}}")
SEQS=$((4 * 8))
exec vllm serve "$MODEL" \\
  "${args[@]}" \\
  --max-num-seqs $SEQS \\
  --cudagraph-capture-sizes $(seq 4 4 16) >server.log 2>&1 &
"""
    )
    found = settings(result)
    assert only(result).resolved[0].merged.model.text == "org/model"
    assert found["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 2}
    assert found["max_num_seqs"] == 32
    assert found["cudagraph_capture_sizes"] == [4, 8, 12, 16]
    spans = {name: s.span.line for name, s in only(result).resolved[0].merged.values.items()}
    assert spans == {"attention_backend": 5, "speculative_config": 6, "max_num_seqs": 10, "cudagraph_capture_sizes": 11}


def test_branches_become_variants(check):
    result = check(
        'if [ "$FAST" = 1 ]; then\n  EXTRA="-cc.cudagraph_mode=FULL_DECODE_ONLY"\nelse\n  EXTRA="--enforce-eager"\nfi\nvllm serve m $EXTRA\n',
        version="0.25.1",
    )
    assert sorted(c.resolved[0].outcome.mode for c in result.checked) == ["FULL_DECODE_ONLY", "NONE"]


def test_environment_before_and_around_the_command(check):
    result = check("export VLLM_USE_V2_MODEL_RUNNER=0\nenv A=1 TORCH_COMPILE_DISABLE=1 nohup vllm serve m\n", version="0.25.1")
    env = {k: w.text for k, w in only(result).deployment.env.items()}
    assert env == {"VLLM_USE_V2_MODEL_RUNNER": "0", "A": "1", "TORCH_COMPILE_DISABLE": "1"}
    assert only(result).resolved[0].effective[0] == "NONE"


def test_a_heredoc_is_the_configuration_file(check):
    result = check(
        "cat > /tmp/serve.yaml <<EOF\nmax-num-seqs: 8\ncompilation-config:\n  cudagraph_mode: FULL_DECODE_ONLY\nEOF\nvllm serve m --config /tmp/serve.yaml\n"
    )
    assert settings(result) == {"max_num_seqs": 8, "compilation_config": {"cudagraph_mode": "FULL_DECODE_ONLY"}}


def test_an_inner_shell(check):
    result = check("""srun --mpi=none bash -lc "export X=1; vllm serve m -tp \\$TP --max-num-seqs 4" """)
    assert settings(result)["max_num_seqs"] == 4
    assert "$TP" in str(settings(result)["tensor_parallel_size"])


def test_docker_run(check):
    result = check(
        "docker run --rm --gpus all -e VLLM_ATTENTION_BACKEND=FLASHINFER -v ~/.cache:/root/.cache -p 8000:8000 vllm/vllm-openai:v0.11.2 "
        "--model org/m --max-num-seqs 8\n",
        version=None,
    )
    one = only(result)
    assert [str(r.version) for r in one.resolved] == ["0.11.2"]
    assert one.resolved[0].request.backend == "FLASHINFER"
    assert one.resolved[0].request.model == "org/m"


def test_dockerfile(check):
    result = check(
        'ARG TAG=v0.19.1\nFROM vllm/vllm-openai:${TAG}\nENV VLLM_ATTENTION_BACKEND=FLASH_ATTN \\\n    OTHER=1\nENTRYPOINT ["vllm", "serve"]\nCMD ["org/m", \\\n     "--max-num-seqs", "8"]\n',
        version=None,
        path="Dockerfile",
    )
    one = only(result)
    assert str(one.resolved[0].version) == "0.19.1"
    assert one.resolved[0].merged.values["max_num_seqs"].span.line == 7
    assert [f.rule for f in result.findings if f.line == 3] == ["GL606"]


COMPOSE = """\
services:
  llm:
    image: vllm/vllm-openai:v0.25.1
    command: {command}
    environment:
      - VLLM_USE_V2_MODEL_RUNNER=0
"""


@pytest.mark.parametrize(
    "command",
    [
        f"""--model org/m --speculative-config '{SPEC}'""".join(['"', '"'])
        .replace('{"', '{\\"')
        .replace('":', '\\":')
        .replace(',"', ',\\"')
        .replace(':"', ':\\"')
        .replace('",', '\\",'),
        f"['--model', 'org/m', '--speculative-config', '{SPEC}']",
        f">-\n      --model org/m\n      --speculative-config '{SPEC}'",
        f"\n      - --model\n      - org/m\n      - --speculative-config={SPEC}",
    ],
    ids=["string", "flow list", "folded", "block list"],
)
def test_compose(check, command: str):
    result = check(COMPOSE.format(command=command), version=None, path="compose.yaml")
    one = only(result)
    assert str(one.resolved[0].version) == "0.25.1"
    assert one.resolved[0].request.speculation.tokens == 2
    assert one.resolved[0].outcome.runner.name == "V1"


POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.22.1
          command: ["/bin/sh", "-c"]
          args:
            - |
              pip list
              vllm serve org/m \\
                --max-num-seqs $SEQS \\
                --enforce-eager -cc.cudagraph_mode=FULL
          env:
            - name: SEQS
              value: "6"
            - name: TOKEN
              valueFrom: {secretKeyRef: {name: a, key: b}}
"""


def test_kubernetes_with_an_inner_shell(check):
    result = check(POD, version=None, path="k8s.yaml")
    one = only(result)
    assert one.deployment.name.startswith("llm")
    assert settings(result)["max_num_seqs"] == 6
    assert [(f.rule, f.line) for f in result.findings if f.rule == "GL611"] == [("GL611", 16)]


def test_roles_are_told_apart(check):
    result = check(
        """\
decode:
  containers:
    - image: vllm/vllm-openai:v0.33.0
      args: ["--model", "m", "-cc.cudagraph_mode=FULL_DECODE_ONLY"]
prefill:
  containers:
    - image: vllm/vllm-openai:v0.33.0
      args: ["--model", "m", "--enforce-eager"]
""",
        version=None,
        path="values.yaml",
    )
    assert {c.deployment.name: c.resolved[0].outcome.mode for c in result.checked} == {"decode": "FULL_DECODE_ONLY", "prefill": "NONE"}


def test_kserve_dynamo_and_production_stack(check):
    kserve = "kind: InferenceService\nspec:\n  predictor:\n    model:\n      modelFormat: {name: vLLM}\n      args: ['--model', 'm', '--max-num-seqs=4']\n".replace(
        "vLLM", "vllm"
    )
    assert settings(check(kserve, path="k.yaml"))["max_num_seqs"] == 4
    dynamo = (
        "kind: DynamoGraphDeployment\nspec:\n  services:\n    W:\n      extraPodSpec:\n        mainContainer:\n          image: x/vllm-runtime:1\n"
        "          command: [python3, -m, vllm.entrypoints.openai.api_server]\n          args: [--model, m, --max-num-seqs, '4']\n"
    )
    assert settings(check(dynamo, path="d.yaml"))["max_num_seqs"] == 4
    stack = (
        "servingEngineSpec:\n  modelSpec:\n  - name: a\n    repository: vllm/vllm-openai\n    tag: v0.19.1\n    modelURL: org/m\n    vllmConfig:\n"
        "      maxModelLen: 4096\n      extraArgs: ['--max-num-seqs', '4']\n"
    )
    result = check(stack, path="s.yaml", version=None)
    assert settings(result) == {"max_model_len": 4096, "max_num_seqs": 4}
    assert str(only(result).resolved[0].version) == "0.19.1"


def test_a_vllm_configuration_file(check):
    result = check("model: org/m\nmax-num-seqs: 8\nenforce-eager: true\ncompilation-config:\n  cudagraph_mode: FULL\n", path="serve.yaml")
    assert [(f.rule, f.line) for f in result.findings] == [("GL611", 3)]


def test_a_recipe_is_a_cross_product(check):
    result = check(
        """\
model:
  model_id: org/m
  min_vllm_version: "0.20.0"
  base_args: ["--trust-remote-code"]
features:
  spec:
    args: ["--speculative-config", '{"method":"mtp","num_speculative_tokens":1}']
opt_in_features: [spec]
variants:
  default: {precision: bf16}
  nvfp4: {model_id: org/m-nvfp4, precision: nvfp4}
hardware_overrides:
  hopper:
    extra_args: ["--compilation-config", '{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}']
  amd: {extra_args: []}
strategy_overrides:
  single_node_tep:
    extra_args: ["--compilation-config", '{"cudagraph_mode":"FULL_AND_PIECEWISE"}']
""",
        path="recipe.yaml",
    )
    names = sorted(c.deployment.name for c in result.checked)
    assert names == [
        "default / amd / single_node_tep",
        "default / amd / single_node_tep / spec",
        "default / hopper / single_node_tep",
        "default / hopper / single_node_tep / spec",
        "nvfp4 / hopper / single_node_tep",
        "nvfp4 / hopper / single_node_tep / spec",
    ]
    replaced = [f for f in result.findings if f.rule == "GL608"]
    assert [f.line for f in replaced] == [18]
    assert "mode" in replaced[0].message


def test_workflow_steps_evaluation_files_and_markdown(check):
    workflow = "on: push\njobs:\n  t:\n    steps:\n    - run: |\n        pip install vllm==0.19.1\n        vllm serve m --max-num-seqs 4\n      env: {VLLM_ATTENTION_BACKEND: FLASHINFER}\n"
    result = check(workflow, version=None, path="w.yml")
    assert str(only(result).resolved[0].version) == "0.19.1"
    assert [(f.rule, f.line) for f in result.findings if f.rule == "GL606"] == [("GL606", 8)]
    evaluation = "model_name: org/m\nserver_args: >-\n  --enforce-eager\n  --max-num-seqs 4\nenv:\n  A: b\n"
    assert settings(check(evaluation, path="e.yaml")) == {"enforce_eager": True, "max_num_seqs": 4}
    markdown = "# Use\n\nRun:\n\n```bash\n$ vllm serve m \\\n    --config=serve.yaml\n```\n\n1. Or\n   ```console\n   vllm serve <model> --max-num-seqs 4\n   ```\n"
    result = check(markdown, path="README.md")
    assert len(result.checked) == 2
    assert [(f.rule, f.line) for f in result.findings] == [("GL607", 7)]


def test_python_calls_lists_and_strings(check):
    result = check(
        """\
import os, subprocess
from vllm import LLM
os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
cc = {"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": list(range(1, 5))}
llm = LLM("org/m", enforce_eager=True, compilation_config=cc, tensor_parallel_size=TP, **extra)
subprocess.run(["vllm", "serve", "org/m", "--config=x.yaml"])
cmd = "vllm serve org/m --max-num-seqs 4"
print("vllm serve exited early with --code")
""",
        path="run.py",
    )
    assert len(result.checked) == 3
    assert [(f.rule, f.line) for f in result.findings if f.severity != "info"] == [("GL611", 5), ("GL607", 6)]
    api = result.checked[0].resolved[0]
    assert api.request.sizes == (1, 2, 3, 4)
    assert "TP" in str(api.merged.values["tensor_parallel_size"].value)


def test_symbolic_values_are_named(check):
    one = only(check("vllm serve m -cc.cudagraph_mode=$MODE $EXTRA\n", version="0.25.1"))
    assert set(one.resolved[0].effective) >= {"FULL_AND_PIECEWISE", "NONE", "PIECEWISE", "FULL_DECODE_ONLY"}
    assert any("$MODE" in need for need in one.resolved[0].needs)


def test_without_a_version_several_releases_answer(check):
    result = check("VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m\n", version=None)
    assert [str(r.version) for r in only(result).resolved] == ["0.33.0", "0.25.1", "0.19.1"]
    finding = next(f for f in result.findings if f.rule == "GL606")
    assert "0.14.1" in finding.message
