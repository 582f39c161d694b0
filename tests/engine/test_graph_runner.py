"""An SGLang-like graph runner: raw_* counts are live, bare ones padded; buffers of a dataclass are filled before the copy or behind it."""

from pathlib import Path

import pytest


def found(outcome):
    return sorted((finding.rule, finding.buffer) for finding in outcome.reported)


def test_the_runner_as_it_stands_is_silent(check):
    assert check("graph_runner").reported == []


@pytest.mark.parametrize(("edits", "buffers"), [
    pytest.param({"self.mrope_positions[raw_num_token:].zero_()": "pass"}, ["mrope_positions"], id="element-of-a-list-display"),
    pytest.param({"            self.out_cache_loc.zero_()": "            pass"}, ["out_cache_loc"], id="element-appended-to-the-list"),
    pytest.param({"            self.seq_lens.fill_(1)": "            pass"}, ["seq_lens"], id="filled-before-when-padded"),
    pytest.param({"self.req_pool_indices[raw_bs:].zero_()": "pass"}, ["req_pool_indices"], id="read-by-the-planner"),
    pytest.param({"self.positions[raw_num_token:].zero_()": "pass"}, ["positions"], id="read-by-the-captured-forward"),
    pytest.param({"            self.seq_lens_cpu.fill_(1)": "            pass"}, ["seq_lens_cpu"], id="host-twin"),
    pytest.param(
        {"self.positions[raw_num_token:].zero_()": "pass", "self.mrope_positions[raw_num_token:].zero_()": "pass"},
        ["mrope_positions", "positions"],
        id="two",
    ),
])
def test_each_padding_statement_taken_away_is_noticed(check, edits, buffers):
    assert found(check("graph_runner", edits)) == [("GL301", buffer) for buffer in buffers]


def test_the_trace_leads_from_the_allocation_over_the_copy_to_the_reader(check):
    finding = check("graph_runner", {"self.positions[raw_num_token:].zero_()": "pass"}).one()
    source = Path(finding["trace"][0]["path"]).read_text().splitlines()
    labels = {label["label"]: (label["path"], label["line"]) for label in finding["trace"]}
    written = next(where for label, where in labels.items() if label.startswith("writes lanes up to `raw_num_token` (live tokens)"))
    assert source[written[1] - 1].strip() == "self.positions[:raw_num_token].copy_(forward_batch.positions)"
    assert finding["trace"][-1]["label"].endswith("up to `num_token` (padded tokens) in the captured graph")


def test_a_buffer_that_only_live_rows_are_read_of_needs_no_padding(check):
    edits = {
        "self.req_pool_indices[raw_bs:].zero_()": "pass",
        "bs, self.buffers.req_pool_indices[:bs], self.buffers.seq_lens[:bs], self.buffers.seq_lens_cpu[:bs])":
            "bs, self.buffers.req_pool_indices[:raw_bs], self.buffers.seq_lens[:bs], self.buffers.seq_lens_cpu[:bs])",
    }
    assert check("graph_runner", edits).reported == []


def test_the_vocabulary_of_another_engine_does_not_know_these_counts(check):
    """`--engine vllm` overrides what the path says: `raw_bs` and `bs` are no words of vLLM."""
    edits = {"self.req_pool_indices[raw_bs:].zero_()": "pass"}
    assert check("graph_runner", edits, "--engine", "vllm").reported == []
    assert found(check("graph_runner", edits, "--engine", "sglang")) == [("GL301", "req_pool_indices")]


WITH = "        with torch.cuda.graph(graph):\n            out = self.run_once(bs, num_token)"
CAPTURES = {
    "with-torch-cuda-graph": {},
    "passed-as-a-method": {WITH: "        out = self.capture(self.run_once)"},
    "lambda": {WITH: "        out = self.capture(lambda: self.run_once(bs, num_token))"},
    "nested-function": {
        WITH:
            "        def body():\n            return self.run_once(bs, num_token)\n\n        out = self._capture_graph(graph, body)",
    },
    "partial": {
        WITH:
            "        out = self._capture_graph(graph, partial(self.run_once, bs, num_token))",
        "import bisect": "import bisect\nfrom functools import partial",
    },
}


@pytest.mark.parametrize("form", CAPTURES)
def test_every_way_to_ask_for_capture_makes_its_readers_padded(check, form):
    """Only the captured forward reads positions at the padded count, so nothing else could give the finding away."""
    edits = CAPTURES[form]
    assert check("graph_runner", edits).reported == []
    broken = check("graph_runner", {**edits, "self.positions[raw_num_token:].zero_()": "pass"})
    assert found(broken) == [("GL301", "positions")]
    assert broken.findings[0]["confidence"] == "high"


def test_what_stands_in_the_capturing_block_itself_is_captured(check):
    broken = check("graph_runner", {
        "out = self.run_once(bs, num_token)": "out = self.model_runner.model.forward(self.buffers.positions[:num_token])",
        "buffers.mrope_positions[:num_token], buffers.positions[:num_token], ": "buffers.mrope_positions[:num_token], ",
        "self.positions[raw_num_token:].zero_()": "pass",
    })
    assert found(broken) == [("GL301", "positions")]
