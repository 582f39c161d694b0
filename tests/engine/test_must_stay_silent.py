"""What occurs in good engines and must not be reported, one file of `fixtures/engines/silent` each, and its nearest faulty twin."""

from typing import NamedTuple

import pytest
from engine_fixtures import ENGINES

FILES = sorted(path.stem for path in (ENGINES / "silent").glob("*.py"))
#: files whose silence is not reached yet -> why
NOISY = {"guarded_reader": "a reader that returns on a zero length is not weighed against the lengths being padded"}


class Twin(NamedTuple):
    """A change that makes the file faulty, and what must be said."""

    file: str
    edits: dict[str, str]
    expected: set[tuple[str, str | None]]
    xfail: str = ""


TWINS = {
    "indices-that-are-no-token-ids": Twin(
        "token_ids", {
            "self.input_ids = ": "self.token_indices = ", "self.input_ids[:num_scheduled": "self.token_indices[:num_scheduled",
            "self.input_ids[:num_tokens": "self.token_indices[:num_tokens",
        }, {("GL301", "token_indices")},
    ),
    "cleared-only-where-nothing-is-written": Twin(
        "branches", {"        self.track_indices[num_reqs:num_reqs_padded].zero_()\n": ""}, {("GL301", "track_indices")},
    ),
    "host-and-kernel-padding-gone": Twin(
        "covering", {"self.slot_ids[num_reqs:].fill_(-1)": "pass", "tl.store(slots_ptr + req, -1)": "pass"}, {("GL201", "slot_ids")},
    ),
    "overwritten-to-the-live-count-only": Twin(
        "overwritten", {"self.state_indices[:num_reqs_padded].copy_(": "self.state_indices[:num_reqs].copy_("},
        {("GL301", "state_indices")},
    ),
    "overwritten-after-the-reader": Twin(
        "overwritten", {
            "        self.state_indices[:num_reqs_padded].copy_(self.resolve(batch, num_reqs_padded))\n": "",
            "        return self.model(self.state_indices[:num_reqs_padded])":
                "        out = self.model(self.state_indices[:num_reqs_padded])\n"
                "        self.state_indices[:num_reqs_padded].copy_(self.resolve(batch, num_reqs_padded))\n        return out",
        }, {("GL301", "state_indices")},
    ),
    "the-guarding-lengths-are-stale-too": Twin(
        "guarded_reader", {"self.seq_lens[num_reqs:].fill_(0)": "pass"}, {("GL301", "req_indices"), ("GL301", "seq_lens")},
    ),
    "the-reader-has-no-guard": Twin("guarded_reader", {"if length == 0:\n        return": "pass"}, {("GL301", "req_indices")}),
    "the-guarding-states-are-stale": Twin("null_state", {"self.state_indices[num_reqs:].fill_(-1)": "pass"}, {("GL301", "state_indices")}),
    "the-name-tells-the-truth": Twin(
        "padded_name", {"num_reqs = batch_desc.num_reqs": "num_reqs = len(batch.requests)"}, {("GL301", "seq_lens")},
    ),
    "the-callee-reads-the-tail": Twin("tail_unread", {"seq_lens[:num_reqs])\n\n\nclass": "seq_lens)\n\n\nclass"}, {("GL301", "seq_lens")}),
    "read-and-not-only-asked-for": Twin(
        "presence", {"self.model(self.lora_ids[:num_reqs], has_lora)": "self.model(self.lora_ids[:num_reqs_padded], has_lora)"},
        {("GL301", "lora_ids")},
    ),
    "only-the-eager-way-fills": Twin(
        "eager", {
            "        if self.enforce_eager:\n": "        if self.enforce_eager:\n            self.req_indices[num_reqs:].fill_(0)\n",
            "        self.req_indices[num_reqs:num_reqs_padded].fill_(0)\n": "",
        }, {("GL301", "req_indices")},
    ),
    "filled-after-the-reader": Twin(
        "eager", {
            "        self.req_indices[num_reqs:num_reqs_padded].fill_(0)\n": "",
            "        return self.model(self.req_indices[:num_reqs_padded])":
                "        out = self.model(self.req_indices[:num_reqs_padded])\n"
                "        self.req_indices[num_reqs:num_reqs_padded].fill_(0)\n        return out",
        }, {("GL301", "req_indices")},
    ),
    "kept-between-steps": Twin(
        "fresh", {
            "self.device = device": "self.req_indices = torch.zeros(config.max_num_seqs, dtype=torch.int32, device=device)",
            "torch.zeros(num_reqs_padded, dtype=torch.int32, device=self.device)": "self.req_indices",
        }, {("GL301", "req_indices")},
    ),
    "padded-tokens-in-every-mode": Twin(
        "mode_narrowed", {"batch_desc.num_tokens if full else int(query_start_loc_cpu[-1])": "batch_desc.num_tokens"}, {("GL102", None)},
    ),
    "narrowed-to-the-wrong-modes": Twin(
        "mode_narrowed", {"if batch_desc.cg_mode != CUDAGraphMode.FULL:": "if batch_desc.cg_mode == CUDAGraphMode.FULL:"},
        {("GL102", None)},
        "a guard that mentions FULL is not asked which way it points",
    ),
    "narrowed-by-the-wrong-branch": Twin(
        "mode_narrowed",
        {"batch_desc.num_tokens if full else int(": "batch_desc.num_tokens if not full else int("},
        {("GL102", None)}, "any conditional expression passes, whatever it tests",
    ),
    "a-live-copy-into-the-persistent-tensor": Twin(
        "persistent_copy", {
            "self.cg_state_indices[:num_reqs_padded].copy_(self.pad(states, num_reqs_padded))":
                "self.cg_state_indices[: common.num_actual_reqs].copy_(states)",
        }, {("GL301", "cg_state_indices")},
    ),
    "sentinel-not-written": Twin("sentinel", {"self.slot_mapping[num_scheduled_tokens:].fill_(-1)": "pass"}, {("GL301", "slot_mapping")}),
    "sentinel-not-tested": Twin("sentinel", {"if slot < 0:\n        return": "pass"}, {("GL205", "slot_mapping")}, "GL205 is not written"),
    "offsets-without-a-tail": Twin(
        "repeated_offset", {"self.query_start_loc[num_reqs + 1 :] = self.query_start_loc[num_reqs]": "pass"},
        {("GL301", "query_start_loc")},
    ),
    "offsets-that-fall-back-to-zero": Twin(
        "repeated_offset", {"= self.query_start_loc[num_reqs]": "= 0"}, {("GL302", "query_start_loc")}, "GL302 is not written",
    ),
    "rows-that-are-reduced": Twin(
        "float_rows", {"self.model(self.hidden_states[:num_tokens_padded])": "self.hidden_states[:num_tokens_padded].amax(dim=0)"},
        {("GL301", "hidden_states")}, "reductions over stale rows of data are not told from lane-wise use",
    ),
    "the-batch-is-not-completed": Twin(
        "dummy_request", {
            "batch = self.with_dummy_requests(batch, num_reqs_padded)": "num_reqs = len(batch.requests)",
            "self.seq_lens[:num_reqs_padded].copy_": "self.seq_lens[:num_reqs].copy_",
        }, {("GL301", "seq_lens")},
    ),
    "a-real-step-reads-what-only-a-dummy-batch-may": Twin(
        "dummy_run", {
            "(self, batch, num_reqs):": "(self, batch, num_reqs, num_reqs_padded):",
            "self.model(self.seq_lens[:num_reqs])": "self.model(self.seq_lens[:num_reqs_padded])",
        }, {("GL301", "seq_lens")},
    ),
    "one-tensor-is-not-narrowed": Twin(
        "narrowed", {
            "(self, query, slots, num_scheduled_tokens):": "(self, query, slots, num_scheduled_tokens, num_tokens_padded):",
            "slots = self.slot_mapping[:num_scheduled_tokens]": "slots = self.slot_mapping[:num_tokens_padded]",
        }, {("GL301", "slot_mapping")},
    ),
    "the-other-object-is-filled": Twin(
        "two_instances", {"self.target.seq_lens[num_reqs:].fill_(0)": "self.draft.seq_lens[num_reqs:].fill_(0)"}, {("GL301", "seq_lens")},
    ),
    "steps-write-what-capture-filled": Twin(
        "filled_before_capture", {
            "        return self.manager.run_fullgraph(desc)":
                "        self.lora_ids[:num_reqs].copy_(batch.lora_ids)\n        return self.manager.run_fullgraph(desc)",
        }, {("GL301", "lora_ids")},
    ),
}


def source(name: str, edits: dict[str, str] | None = None) -> dict[str, str]:
    text = (ENGINES / "silent" / f"{name}.py").read_text()
    for old, new in (edits or {}).items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return {f"{name}.py": text}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=NOISY[name])) if name in NOISY else name for name in FILES
])
def test_what_good_engines_do_is_not_reported(check, name):
    assert check(source(name)).reported == []


@pytest.mark.parametrize("twin", [
    pytest.param(twin, id=name, marks=pytest.mark.xfail(strict=True, reason=twin.xfail) if twin.xfail else ())
    for name, twin in TWINS.items()
])
def test_the_nearest_faulty_twin_is_reported(check, twin):
    reported = check(source(twin.file, twin.edits)).reported
    assert {(finding.rule, finding.buffer) for finding in reported} == twin.expected


@pytest.mark.parametrize("statement", ["self.slot_ids[num_reqs:].fill_(-1)", "tl.store(slots_ptr + req, -1)"])
def test_either_of_two_covering_statements_is_enough(check, statement):
    assert check(source("covering", {statement: "pass"})).reported == []


def test_every_file_has_a_twin():
    assert {twin.file for twin in TWINS.values()} == set(FILES)
