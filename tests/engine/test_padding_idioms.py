"""A draft model that pads each of its buffers in another way: silent as it stands, and each padding statement taken away is noticed."""

import pytest

LAST = "tl.store(last_ptr + req, tl.load(start_ptr + req + 1) - 1)"
SLOTS = "tl.store(slots_ptr + token, tl.load(positions_ptr + token))"
IDX = "self.idx_mapping[:num_reqs].copy_(batch.idx_mapping)"


def test_every_idiom_of_padding_is_understood(check):
    assert check("speculator").reported == []


@pytest.mark.parametrize(("statement", "replacement", "expected"), [
    pytest.param(
        "self.input_buffers.positions[num_scheduled_tokens:].zero_()", "pass",
        ("GL301", "positions", "self.input_buffers.positions[:num_scheduled_tokens].copy_(batch.positions)"), id="fill-in-another-object",
    ),
    pytest.param(
        "buffer[count:].fill_(0)", "pass",
        ("GL301", "mrope_positions", "stage(self.input_buffers.mrope_positions, batch.mrope_positions, num_scheduled_tokens)"),
        id="fill-through-a-parameter",
    ),
    pytest.param("view[num_reqs:].fill_(-1)", "pass", ("GL301", "idx_mapping", IDX), id="fill-through-a-local-view"),
    pytest.param(
        "self.state_indices.np[num_reqs:] = -1", "pass",
        ("GL301", "state_indices", "self.state_indices.np[:num_reqs] = batch.state_indices"), id="fill-of-the-host-half",
    ),
    pytest.param(
        "self.input_buffers.query_start_loc[num_reqs + 1 :].fill_(num_scheduled_tokens)", "pass",
        ("GL301", "query_start_loc", "self.input_buffers.query_start_loc[: num_reqs + 1].copy_(batch.query_start_loc)"),
        id="fill-with-the-last-offset",
    ),
    pytest.param(
        "self.prefix_lens.fill_(0)", "pass",
        ("GL301", "prefix_lens", "self.prefix_lens[:num_reqs].copy_(batch.prefix_lens)"), id="whole-buffer-fill-before",
    ),
    pytest.param(
        "self.accepted_counts[num_reqs:rows].fill_(0)", "pass",
        ("GL301", "accepted_counts", "self.accepted_counts[:num_reqs].copy_(batch.accepted_counts)"), id="high-water-mark",
    ),
    pytest.param(
        "tl.store(last_ptr + lanes, 0, mask=lanes < max_num_reqs)", "pass", ("GL201", "last_token_indices", LAST), id="extra-program",
    ),
    pytest.param(
        "self.input_buffers.seq_lens[num_reqs:] = 0", "pass",
        ("GL301", "seq_lens", "self.input_buffers.seq_lens[:num_reqs].copy_(seq_lens)"), id="fill-in-a-callee-of-a-callee",
    ),
    pytest.param(
        "        self.pad_slots(num_scheduled_tokens)", "        pass", ("GL201", "slot_mapping", SLOTS), id="kernel-launched-in-a-callee",
    ),
])
def test_a_padding_statement_taken_away_is_noticed(check, statement, replacement, expected):
    assert check("speculator", {statement: replacement}).reported == [expected]


@pytest.mark.xfail(strict=True, reason="a fill in a method that nobody calls any more counts as done by another step")
def test_a_fill_that_is_no_longer_called_does_not_help(check):
    outcome = check("speculator", {"        self.pad_lengths(num_reqs)": "        pass"})
    assert outcome.reported == [("GL301", "seq_lens", "self.input_buffers.seq_lens[:num_reqs].copy_(seq_lens)")]


def test_a_helper_called_from_a_step_runs_every_step_whatever_its_name(check):
    outcome = check("speculator", {
        "self.update_lengths(num_reqs, batch.seq_lens)": "self.set_lengths(num_reqs, batch.seq_lens)",
        "def update_lengths": "def set_lengths", "self.input_buffers.seq_lens[num_reqs:] = 0": "pass",
    })
    assert outcome.reported == [("GL301", "seq_lens", "self.input_buffers.seq_lens[:num_reqs].copy_(seq_lens)")]


def test_a_fill_that_stops_at_the_padded_count_is_enough_for_a_padded_reader(check):
    assert check("speculator", {"rows = max(desc.num_reqs, self.dirty)": "rows = desc.num_reqs"}).reported == []


def test_a_fill_that_starts_at_the_padded_count_leaves_the_lanes_before_it(check):
    outcome = check("speculator", {
        "view = self.idx_mapping[: desc.num_reqs]": "pass", "view[num_reqs:].fill_(-1)": "self.idx_mapping[desc.num_reqs :].fill_(-1)",
    })
    assert outcome.reported == [("GL202", "idx_mapping", "self.idx_mapping[desc.num_reqs :].fill_(-1)")]


def test_a_fill_that_ends_at_the_live_count_fills_nothing_that_is_read(check):
    outcome = check("speculator", {"view[num_reqs:].fill_(-1)": "view[:num_reqs].fill_(-1)"})
    assert ("GL301", "idx_mapping", IDX) in outcome.reported


def test_the_fill_of_another_buffer_does_not_help(check):
    outcome = check("speculator", {"view = self.idx_mapping[: desc.num_reqs]": "view = self.prefix_lens[: desc.num_reqs]"})
    assert outcome.reported == [("GL301", "idx_mapping", IDX)]


def test_a_kernel_that_pads_from_another_count_of_tokens_is_late(check):
    """The pads begin at the padded count of the descriptor; tokens between it and the live end keep older slots."""
    outcome = check("speculator", {
        "        self.pad_slots(num_scheduled_tokens)": "        self.pad_slots(desc.num_tokens)",
        "self.prepare(num_reqs, num_scheduled_tokens, batch)\n": "self.prepare(num_reqs, num_scheduled_tokens, batch, desc)\n",
        "def prepare(self, num_reqs, num_scheduled_tokens, batch):": "def prepare(self, num_reqs, num_scheduled_tokens, batch, desc):",
    })
    assert outcome.reported == [("GL202", "slot_mapping", "tl.store(slots_ptr + lanes, -1, mask=lanes < max_num_tokens)")]


@pytest.mark.xfail(strict=True, reason="GL305 is not written: halves of a mirrored buffer count as one storage")
def test_the_host_half_padded_and_the_live_rows_only_copied(check):
    """The device half keeps its old tail."""
    outcome = check("speculator", {"self.state_indices.copy_to_gpu()": "self.state_indices.copy_to_gpu(num_reqs)"})
    assert [finding.buffer for finding in outcome.reported] == ["state_indices"]


def test_a_mirrored_copy_of_the_padded_rows_is_enough(check):
    assert check("speculator", {"self.state_indices.copy_to_gpu()": "self.state_indices.copy_to_gpu(desc.num_reqs)"}).reported == []


def test_what_a_kernel_wrote_is_shown_with_the_launch_and_the_captured_reader(check):
    finding = check("speculator", {"        self.pad_slots(num_scheduled_tokens)": "        pass"}).one()
    labels = [(point["path"].rsplit("/", 1)[-1], point["label"]) for point in finding["trace"]]
    assert labels[0][0] == "speculator.py"
    assert "allocated with room for capacity tokens" in labels[0][1]
    assert ("speculator.py", "launches `slots_kernel`") in labels
    assert ("kernels.py", "writes lanes up to `num_scheduled_tokens` (live tokens) only") in labels
    assert "in the captured graph" in labels[-1][1]
    assert finding["symbol"] == "slots_kernel"


def test_severity_follows_the_meaning_of_the_buffer_and_rows_of_data_stay_hidden(check):
    """Temperatures of rows that nobody mixes cannot harm a live one, so the finding is there for those who ask only."""
    hidden = check("speculator", {"view[num_reqs:].fill_(-1)": "pass"}, "--min-confidence", "low")
    told = {finding["buffer"]: (finding["severity"], finding["confidence"]) for finding in hidden.findings}
    assert told == {"idx_mapping": ("error", "high"), "temperature": ("warning", "low")}
    assert [f["buffer"] for f in check("speculator", {"view[num_reqs:].fill_(-1)": "pass"}).findings] == ["idx_mapping"]


def test_the_witness_is_a_schedule_in_the_unit_of_the_writer(check):
    requests = check("speculator", {"view[num_reqs:].fill_(-1)": "pass"}).one()["witness"]
    assert [(step["live"], step["padded"], step["unit"]) for step in requests["steps"]] == [(12, 12, "requests"), (3, 4, "requests")]
    assert requests["stale"] == [3, 4]
    tokens = check("speculator", {"self.input_buffers.positions[num_scheduled_tokens:].zero_()": "pass"}).one()["witness"]
    assert {step["unit"] for step in tokens["steps"]} == {"tokens"}
    first, second = tokens["steps"]
    assert first["live"] > second["padded"] > second["live"]
    assert tokens["stale"] == [second["live"], second["padded"]]
