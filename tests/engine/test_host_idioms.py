"""Many ways in which host code writes or pads one buffer: each padding must silence, each live write must be seen."""

import pytest

WRITE = "        self.req_indices[:num_reqs].copy_(batch.rows)\n"
FILL = "        self.req_indices[num_reqs:].fill_(-1)\n"
REPLAY = "        self.manager.run_fullgraph(desc)\n"


def block(text):
    return "".join(f"        {line}\n" for line in text.split("\n"))


def cases(table):
    return [pytest.param(text, id=name) for name, text in table.items()]


BEFORE = {
    "whole": "self.req_indices.fill_(-1)",
    "zero": "self.req_indices.zero_()",
    "whole-slice": "self.req_indices[:] = -1",
    "ellipsis": "self.req_indices[...] = -1",
    "padded-slice": "self.req_indices[:num_reqs_padded] = -1",
    "out-argument": "torch.full((num_reqs_padded,), -1, out=self.req_indices[:num_reqs_padded])",
    "copy-of-a-whole-tensor": "self.req_indices.copy_(self.defaults)",
    "foreach": "torch._foreach_zero_([self.req_indices, self.host_indices])",
    "one-loop-over-several": "for buffer in (self.req_indices, self.host_indices):\n    buffer.zero_()",
    "one-comprehension-over-several": "[buffer.zero_() for buffer in (self.req_indices, self.host_indices)]",
    "through-an-alias": "self.alias.fill_(-1)",
    "through-a-property": "self.rows.fill_(-1)",
    "under-a-stream": "with torch.cuda.stream(self.stream):\n    self.req_indices.fill_(-1)",
    "when-padded": "if num_reqs_padded > num_reqs:\n    self.req_indices.fill_(-1)",
}


@pytest.mark.parametrize("fill", cases(BEFORE))
def test_a_fill_before_the_write_pads(check, fill):
    assert check("host", {WRITE: block(fill) + WRITE, FILL: ""}).reported == []


AFTER = {
    "tail": "self.req_indices[num_reqs:] = -1",
    "gap": "self.req_indices[num_reqs:num_reqs_padded].fill_(-1)",
    "gap-by-its-length": "pad = num_reqs_padded - num_reqs\nself.req_indices[num_reqs : num_reqs + pad] = -1",
    "gap-by-narrow": "self.req_indices.narrow(0, num_reqs, num_reqs_padded - num_reqs).fill_(-1)",
    "tail-of-a-view": "view = self.req_indices[:num_reqs_padded]\nview[num_reqs:] = -1",
    "if-there-is-a-tail": "if num_reqs < num_reqs_padded:\n    self.req_indices[num_reqs:num_reqs_padded] = -1",
    "in-both-branches": "if batch.big:\n    self.req_indices[num_reqs:].fill_(-1)\nelse:\n    self.req_indices[num_reqs:].fill_(0)",
    "boolean-mask": "self.req_indices[self.arange >= num_reqs] = -1",
    "masked-fill": "self.req_indices.masked_fill_(self.arange >= num_reqs, -1)",
    "index-fill": "self.req_indices.index_fill_(0, self.tail(num_reqs), -1)",
    "arange-of-the-tail": "self.req_indices[torch.arange(num_reqs, num_reqs_padded)] = -1",
    "where": "self.req_indices.copy_(torch.where(self.arange < num_reqs, self.req_indices, -1))",
    "in-a-try": "try:\n    self.req_indices[num_reqs:].fill_(-1)\nexcept RuntimeError:\n    raise",
    "one-loop-over-several": "for buffer in (self.req_indices, self.host_indices):\n    buffer[num_reqs:].fill_(-1)",
    "copy-of-zeros": "self.req_indices[num_reqs:num_reqs_padded].copy_(self.nothing[: num_reqs_padded - num_reqs])",
}


@pytest.mark.parametrize("fill", cases(AFTER))
def test_a_fill_after_the_write_pads(check, fill):
    assert check("host", {FILL: block(fill)}).reported == []


LIVE = {
    "copy": "self.req_indices[:num_reqs].copy_(batch.rows)",
    "assignment": "self.req_indices[:num_reqs] = batch.rows",
    "narrow": "self.req_indices.narrow(0, 0, num_reqs).copy_(batch.rows)",
    "out-argument": "torch.index_select(batch.table, 0, batch.rows, out=self.req_indices[:num_reqs])",
    "copyto": "np.copyto(self.req_indices[:num_reqs], batch.rows)",
    "renamed-bound": "count = num_reqs\nself.req_indices[:count].copy_(batch.rows)",
    "walrus": "if (count := num_reqs) > 0:\n    self.req_indices[:count].copy_(batch.rows)",
    "match": "match batch.kind:\n    case 1:\n        self.req_indices[:num_reqs].copy_(batch.rows)",
    "try": "try:\n    self.req_indices[:num_reqs].copy_(batch.rows)\nfinally:\n    self.log()",
    "nested-function": "def put(dst, src):\n    dst[:num_reqs].copy_(src)\nput(self.req_indices, batch.rows)",
    "two-dimensions": "self.req_indices[:num_reqs, :8].copy_(batch.rows)",
    "slice-object": "live = slice(0, num_reqs)\nself.req_indices[live].copy_(batch.rows)",
    "row-by-row": "for i in range(num_reqs):\n    self.req_indices[i] = batch.rows[i]",
    "helper-that-assigns-a-slice": "self.put(self.req_indices, batch.rows, num_reqs)",
    "through-an-alias": "self.alias[:num_reqs].copy_(batch.rows)",
    "through-a-property": "self.rows[:num_reqs].copy_(batch.rows)",
    "through-a-getter": "self.get_rows(num_reqs).copy_(batch.rows)",
}


@pytest.mark.parametrize("write", cases(LIVE))
def test_a_live_write_is_seen_whatever_its_form(check, write):
    reported = check("host", {WRITE: block(write), FILL: ""}).reported
    assert [(finding.rule, finding.buffer) for finding in reported] == [("GL301", "req_indices")]


WHOLE = {
    "padded-bound": "self.req_indices[:num_reqs_padded].copy_(batch.padded_rows)",
    "padded-by-the-caller": "num_reqs = num_reqs_padded\nself.req_indices[:num_reqs].copy_(batch.padded_rows)",
    "pad-function": "self.req_indices[:num_reqs_padded] = torch.nn.functional.pad(batch.rows, (0, num_reqs_padded - num_reqs))",
    "cat": "self.req_indices[:num_reqs_padded] = torch.cat([batch.rows, self.nothing[: num_reqs_padded - num_reqs]])",
    "padded-host-copy":
        "self.host_indices[:num_reqs] = batch.rows\nself.host_indices[num_reqs:] = -1\nself.req_indices.copy_(self.host_indices)",
}


@pytest.mark.parametrize("write", cases(WHOLE))
def test_a_write_of_padded_rows_needs_no_fill(check, write):
    assert check("host", {WRITE: block(write), FILL: ""}).reported == []


def test_a_stale_host_tail_that_is_copied_to_the_device_is_stale(check):
    write = "self.host_indices[:num_reqs] = batch.rows\nself.req_indices[:num_reqs_padded].copy_(self.host_indices[:num_reqs_padded])"
    reported = check("host", {WRITE: block(write), FILL: ""}).reported
    assert reported == [("GL301", "host_indices", "self.host_indices[:num_reqs] = batch.rows")]


EQUAL = {
    "if": "if num_reqs == num_reqs_padded:\n    {}\n    self.plan(self.req_indices[:num_reqs_padded])",
    "early-return": "if num_reqs != num_reqs_padded:\n    return self.eager(batch)\n{}\nself.plan(self.req_indices[:num_reqs_padded])",
    "assert": "assert num_reqs == num_reqs_padded\n{}\nself.plan(self.req_indices[:num_reqs_padded])",
}


@pytest.mark.parametrize("form", EQUAL)
def test_where_live_and_padded_are_proved_equal_nothing_is_stale(check, form):
    step = EQUAL[form].format(WRITE.strip())
    edits = {WRITE: block(step), FILL: "", REPLAY: "", "self.model(self.req_indices[:num_reqs])": "self.model(num_reqs)"}
    assert check("host", edits).reported == []


USES = {
    "shape": "rows = self.req_indices[:num_reqs_padded].shape[0]",
    "log": "logger.debug('%s', self.req_indices[:num_reqs_padded])",
    "assert": "assert self.req_indices[:num_reqs_padded].is_cuda",
    "fill": "self.req_indices[:num_reqs_padded].fill_(0)",
}


@pytest.mark.parametrize("use", cases(USES))
def test_uses_that_read_no_row_are_no_readers(check, use):
    edits = {FILL: block(use), "self.model(self.req_indices[:num_reqs])": "self.model(num_reqs)"}
    assert check("host", edits).reported == []


@pytest.mark.xfail(strict=True, reason="the replay is no moment: a captured reader accepts fills from anywhere in the step")
def test_a_fill_after_the_replay_comes_too_late(check):
    assert [finding.buffer for finding in check("host", {FILL: "", REPLAY: REPLAY + FILL}).reported] == ["req_indices"]


@pytest.mark.xfail(strict=True, reason="a fill under any condition counts, related to the reader or not")
def test_a_fill_under_an_unrelated_flag_does_not_help(check):
    fill = block("if self.uses_mrope:\n    self.req_indices[num_reqs:].fill_(-1)")
    assert [finding.buffer for finding in check("host", {FILL: fill}).reported] == ["req_indices"]
