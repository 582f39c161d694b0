# ruff: noqa: E501  inputs stand here as people write them
"""Malformed input: a finding or a clear note at the right line, never a traceback, and the rest is still read."""

from __future__ import annotations

import pytest

from graphlint.config.tables import bundled_versions


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.yaml", "services:\n  llm:\n\timage: vllm/vllm-openai:v0.19.1\n    command: vllm serve m\n", 3),
        ("b.yaml", "services:\n  llm:\n    image: vllm/vllm-openai:v0.19.1\n   command: vllm serve m\n", 4),
        ("c.yaml", "a: &x {b: 1\nvllm serve m --enforce-eager: [\n", 2),
        ("d.sh", "vllm serve m --compilation-config '{\"cudagraph_mode\": FULL}'\n", 1),
        ("e.sh", 'echo start\nvllm serve m \\\n  --compilation-config {"cudagraph_mode":"FULL"}\n', 3),
        (
            "f.yaml",
            "spec:\n  containers:\n  - image: vllm/vllm-openai:v0.25.1\n    args: ['--model', 'm', '--compilation-config', '{cudagraph_mode: FULL}']\n",
            4,
        ),
        ("g.py", "from vllm import LLM\nLLM('m', enforce_eager=True,\n", 2),
        ("Dockerfile", 'FROM vllm/vllm-openai:v0.25.1\nCMD ["--model", \'m\', "--enforce-eager"]\n', 2),
    ],
    ids=["tab", "indentation", "flow", "bare word", "no quotes", "inside a list", "python", "exec form"],
)
def test_a_finding_or_note_at_the_line(check, path: str, text: str, line: int):
    result = check(text, path=path, version="0.25.1")
    assert not result.errors
    places = {f.line for f in result.findings if f.rule == "GL618"} | {n.line for n in result.notes}
    assert line in places


def test_a_broken_document_does_not_hide_the_others(check):
    result = check(
        "a: [1\n---\nservices:\n  llm:\n    image: vllm/vllm-openai:v0.25.1\n    command: --model m --config=x.yaml\n", path="x.yaml"
    )
    assert [(f.rule, f.line) for f in result.findings] == [("GL618", 1), ("GL607", 6)]


def test_anchors_merge_keys_and_cycles(check):
    text = (
        "x-base: &base\n  image: vllm/vllm-openai:v0.25.1\n  environment: &env {VLLM_USE_V2_MODEL_RUNNER: '0'}\n"
        "services:\n  a:\n    <<: *base\n    command: --model m --max-num-seqs 4\n  b: &loop\n    self: *loop\n"
    )
    result = check(text, path="compose.yaml", version=None)
    assert [c.resolved[0].merged.values["max_num_seqs"].value for c in result.checked] == [4]
    assert result.checked[0].deployment.env["VLLM_USE_V2_MODEL_RUNNER"].text == "0"


def test_helm_templates(check):
    text = (
        "{{- if .Values.enabled }}\napiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n"
        '      - image: "{{ .Values.image }}:{{ .Values.tag }}"\n        args:\n        - vllm\n        - serve\n        - {{ .Values.model | quote }}\n'
        "        {{- with .Values.extra }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n        - --enforce-eager\n        - -cc.cudagraph_mode=FULL\n{{- end }}\n"
    )
    result = check(text, path="deployment.yaml")
    assert [(f.rule, f.line) for f in result.findings] == [("GL611", 16)]


def test_a_continuation_that_does_not_continue(check):
    result = check("vllm serve m \\ \n  --enforce-eager \\  # eager\n  -cc.cudagraph_mode=FULL\n")
    assert [f.line for f in result.findings if f.rule == "GL618"] == [1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "'",
        '"',
        "$(",
        "${",
        "vllm serve",
        "vllm serve '",
        "vllm serve $",
        "vllm serve m --config",
        "if vllm serve m; then",
        "case $x in vllm serve m",
        "vllm serve m --compilation-config '{\"a\":'",
        "vllm serve m -cc.",
        "vllm serve m -cc.a",
        "for x in; do vllm serve m",
        "vllm serve m <<EOF\nx",
        "vllm serve m -O",
        "vllm serve m -Ofoo",
        "vllm serve m --cudagraph-capture-sizes",
        "vllm serve m --",
        "vllm serve m -cc.cudagraph_capture_sizes=[]",
        "((((vllm serve m",
        "vllm serve m --speculative-config 3",
        "vllm serve m --speculative-config '[]'",
        "vllm serve m --kv-transfer-config 'x'",
        "vllm serve m --max-num-seqs 0",
        'vllm serve m --compilation-config \'{"cudagraph_capture_sizes":["a"]}\'',
        "vllm serve m --compilation-config '{\"pass_config\":1}'",
        "vllm serve m -tp 0",
        "vllm serve m --attention-config '{\"backend\":null}'",
        "vllm serve m --max-num-batched-tokens 0",
        "vllm serve m --speculative-config '{\"num_speculative_tokens\":-1}'",
    ],
)
@pytest.mark.parametrize("version", ["0.10.1", "0.12.0", "0.19.1", "0.33.0"])
def test_nothing_crashes(check, text: str, version: str):
    assert check(text, version=version).errors == []


def test_a_recipe_for_what_is_not_released_yet_is_answered_for_the_newest_release(check):
    """vLLM's own recipes say `min_vllm_version: "nightly"` for models of the next release."""
    text = "model:\n  model_id: org/m\n  min_vllm_version: nightly\n  base_args: ['--max-num-seqs', '4']\nvariants:\n  default: {precision: bf16}\n"
    result = check(text, path="recipe.yaml", version=None)
    assert not result.errors
    (answer,) = result.checked
    assert [str(one.version) for one in answer.resolved] == [str(bundled_versions()[-1])]


def test_values_that_no_configuration_can_hold_are_not_known(check):
    """Documentation shows `...` where a reader puts something."""
    text = "from vllm import LLM\n\nllm = LLM('org/m', compilation_config={'mode': ...}, max_num_seqs=4, kv_cache_dtype=b'fp8')\n"
    result = check(text, path="serve.py", version="0.25.1")
    assert not result.errors
    (answer,) = result.checked
    assert answer.resolved[0].merged.values["max_num_seqs"].value == 4
