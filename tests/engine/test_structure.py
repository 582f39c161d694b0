"""Faults that lie between definitions: base and subclass, builder and metadata, step functions that only callers order."""

import pytest


def test_builders_as_they_stand_are_silent(check):
    assert check("builders").reported == []


@pytest.mark.parametrize(("edits", "expected"), [
    pytest.param(
        {"self.state_indices[num_reqs:].fill_(-1)": "pass"},
        [("GL301", "state_indices", "self.state_indices[:num_reqs].copy_(batch.state_indices)")], id="pad-hook-of-the-subclass",
    ),
    pytest.param(
        {"self.seq_lens[num_reqs:].fill_(0)": "pass"}, [("GL301", "seq_lens", "self.seq_lens[:num_reqs].copy_(batch.seq_lens)")],
        id="pad-of-the-base-through-super",
    ),
    pytest.param(
        {"super().pad(num_reqs)": "pass"}, [("GL301", "seq_lens", "self.seq_lens[:num_reqs].copy_(batch.seq_lens)")], id="super-forgotten",
        marks=pytest.mark.xfail(strict=True, reason="a fill of the base counts for a subclass that overrides it"),
    ),
    pytest.param(
        {"        self.pad(num_reqs)\n": ""}, [
            ("GL301", "seq_lens", "self.seq_lens[:num_reqs].copy_(batch.seq_lens)"),
            ("GL301", "state_indices", "self.state_indices[:num_reqs].copy_(batch.state_indices)"),
        ], id="hook-never-called",
        marks=pytest.mark.xfail(strict=True, reason="a fill in a method that nobody calls counts as done by another step"),
    ),
])
def test_buffers_and_hooks_are_inherited(check, edits, expected):
    """The step is the base's, the captured forward the subclass's."""
    assert check("builders", edits).reported == expected


def test_a_subclass_that_writes_its_buffer_whole_needs_no_pad_hook(check):
    edits = {
        "    def pad(self, num_reqs):\n        super().pad(num_reqs)\n        self.state_indices[num_reqs:].fill_(-1)\n": "",
        "        self.state_indices[:num_reqs].copy_(batch.state_indices)\n": "        self.state_indices.copy_(batch.all_states)\n\n",
    }
    assert check("builders", edits).reported == []


@pytest.mark.parametrize(("statement", "buffer", "at"), [
    (
        "self.block_table_rows[num_actual_reqs:num_reqs_padded].fill_(0)", "block_table_rows",
        "self.block_table_rows[:num_actual_reqs].copy_(common.block_table)",
    ),
    (
        "self.paged_kv_indptr[num_actual_reqs + 1 : num_reqs_padded + 1].fill_(common.last)", "paged_kv_indptr",
        "self.paged_kv_indptr[: num_actual_reqs + 1].copy_(common.indptr)",
    ),
])
def test_a_view_stored_in_metadata_is_a_reader(check, statement, buffer, at):
    outcome = check("builders", {statement: "pass"})
    assert outcome.reported == [("GL301", buffer, at)]
    finding = outcome.one()
    assert finding["trace"][-1]["label"].startswith("is stored in DecodeMetadata up to")
    assert finding["severity"] == "error"
    assert finding["confidence"] == "high"


def test_a_fill_after_the_view_was_stored_still_helps(check):
    """Metadata is read when the step runs; a fill behind the constructor comes in time."""
    edits = {
        "        self.block_table_rows[num_actual_reqs:num_reqs_padded].fill_(0)\n": "",
        "        return DecodeMetadata(": "        metadata = DecodeMetadata(",
        "            paged_kv_indptr=self.paged_kv_indptr[: num_reqs_padded + 1],\n        )":
            "            paged_kv_indptr=self.paged_kv_indptr[: num_reqs_padded + 1],\n        )\n"
            "        self.block_table_rows[num_actual_reqs:num_reqs_padded].fill_(0)\n        return metadata",
    }
    assert check("builders", edits).reported == []


def test_a_request_buffer_sliced_by_tokens_is_a_unit_error(check):
    outcome = check("builders", {
        "block_table=self.block_table_rows[:num_reqs_padded]":
            "block_table=self.block_table_rows[:num_actual_tokens]",
    })
    assert [(finding.rule, finding.buffer) for finding in outcome.reported] == [("GL101", "block_table_rows")]
    assert outcome.one()["severity"] == "error"


def test_a_proof_of_one_token_a_request_makes_the_slice_by_tokens_right(check):
    edits = {
        "        return DecodeMetadata(":
            "        if num_actual_tokens == num_reqs_padded:\n            return self.block_table_rows[:num_actual_tokens]\n"
            "        return DecodeMetadata(",
    }
    assert check("builders", edits).reported == []


SPLIT = '''\
import torch

class Runner:
    def __init__(self, config):
        self.req_indices = torch.zeros(config.max_num_seqs, dtype=torch.int32)

    def prepare_inputs(self, batch, num_reqs):
        self.req_indices[:num_reqs].copy_(batch.req_indices)

    def run_model(self, num_reqs_padded):
        return self.model(self.req_indices[:num_reqs_padded])
'''


def test_step_functions_that_nobody_here_calls_are_joined_with_less_confidence(check):
    """Their order is the caller's, who is not in view."""
    finding = check({"runner.py": SPLIT}).one()
    assert (finding["rule"], finding["buffer"], finding["confidence"]) == ("GL301", "req_indices", "medium")


def test_step_functions_that_a_caller_orders_are_joined_with_full_confidence(check):
    ordered = SPLIT + "\n    def execute_model(self, batch, num_reqs, num_reqs_padded):\n        self.prepare_inputs(batch, num_reqs)\n"
    finding = check({"runner.py": ordered + "        return self.run_model(num_reqs_padded)\n"}).one()
    assert finding["confidence"] == "high"
    assert finding["trace"][0]["line"] == 5


def test_a_fill_by_another_step_function_of_unknown_order_is_given_the_benefit_of_the_doubt(check):
    filled = SPLIT + "\n    def finish_step(self, num_reqs):\n        self.req_indices[num_reqs:].fill_(0)\n"
    assert check({"runner.py": filled}).reported == []


def test_a_reader_before_the_writer_in_the_step_sees_the_step_before(check):
    """The live rows of the last step are all it may see; that they are stale is the code's own affair unless it reads beyond them."""
    text = SPLIT + (
        "\n    def execute_model(self, batch, num_reqs, num_reqs_padded):\n        out = self.model(self.req_indices[:num_reqs])\n"
        "        self.prepare_inputs(batch, num_reqs)\n        return out\n"
    )
    assert check({"runner.py": text.replace("[:num_reqs_padded])", "[:num_reqs])")}).reported == []


MEANINGS = {
    "slot_mapping": "error", "out_cache_loc": "error", "state_indices": "error", "block_table": "error", "query_start_loc": "error",
    "kv_indptr": "error", "seq_lens": "error", "num_accepted_tokens": "error", "is_padding_mask": "warning", "top_p": None,
}


def test_severity_and_visibility_follow_from_what_a_buffer_means(check):
    """Slots, indices, offsets and lengths are errors, masks warnings; rows of plain data are not shown by default."""
    text = "import torch\n\nclass Runner:\n    def __init__(self, config):\n"
    text += "".join(f"        self.{name} = torch.zeros(config.max_num_seqs)\n" for name in MEANINGS)
    text += "\n    def execute_model(self, batch, num_reqs, num_reqs_padded):\n"
    text += "".join(f"        self.{name}[:num_reqs].copy_(batch.{name})\n" for name in MEANINGS)
    text += "".join(f"        self.use(self.{name}[:num_reqs_padded])\n" for name in MEANINGS)
    outcome = check({"runner.py": text})
    shown = {finding["buffer"]: finding["severity"] for finding in outcome.findings}
    assert shown == {name: severity for name, severity in MEANINGS.items() if severity is not None}
