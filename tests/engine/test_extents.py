"""The unit algebra: what holds for all extents, and what code is understood to count."""

from hypothesis import given, settings
from hypothesis import strategies as st

from graphlint.extents import UNSURE, Atom, Extent
from graphlint.extents.algebra import RANK, beyond

UNITS = ["requests", "tokens", "pages"]
#: a batch in which the states of a unit differ by more than any factor or constant below can make up for
WIDE = {"live": 10**4, "padded": 10**10, "capacity": 10**16}

#: no deadline on a busy machine, the same examples in every run
steady = settings(deadline=None, derandomize=True, max_examples=40)
states = st.sampled_from(list(RANK))
factors = st.integers(1, 64)
constants = st.integers(-64, 64)


@st.composite
def extents(draw, unit=None, states=states, factor=factors, unknown=True):
    if unknown and draw(st.integers(0, 9)) == 0:
        return Extent.unknown()
    unit = unit or draw(st.sampled_from(UNITS))
    terms = draw(st.dictionaries(st.builds(Atom, st.just(unit), states, st.sampled_from(["", "a", "b"])), factor, max_size=3))
    return Extent(tuple(sorted(terms.items())), draw(constants))


@st.composite
def batches(draw):
    """A value for each count, ordered as the states of a unit are; tags of one unit and state may differ below the next state."""
    values = {}
    for unit in UNITS:
        low = 0
        for state in RANK:
            tagged = [low + draw(st.integers(0, 100)) for _ in range(3)]
            values.update({(unit, state, tag): value for tag, value in zip(("", "a", "b"), tagged, strict=True)})
            low = max(tagged)
    return values


def value(extent, batch):
    return sum(factor * batch[atom.unit, atom.state, atom.tag] for atom, factor in extent.terms) + extent.constant


@steady
@given(extents(unit="tokens", unknown=False), extents(unit="tokens", unknown=False), batches())
def test_sums_and_differences_count_what_they_say(a, b, batch):
    assert value(a.add(b), batch) == value(a, batch) + value(b, batch)
    assert value(a.add(b, -1), batch) == value(a, batch) - value(b, batch)


@steady
@given(extents(unknown=False), st.integers(-8, 8), batches())
def test_a_multiple_counts_what_it_says(a, factor, batch):
    assert value(a.scale(factor), batch) == factor * value(a, batch)


@steady
@given(extents(), extents(), extents())
def test_sums_do_not_depend_on_order(a, b, c):
    assert a.add(b) == b.add(a)
    assert a.add(b).add(c) == a.add(b.add(c))


@steady
@given(extents())
def test_nothing_added_changes_nothing_and_a_count_less_itself_is_nothing(a):
    assert a.add(Extent.number(0)) == a
    assert a.scale(1) == a
    assert a.add(a, -1) == (Extent.number(0) if a.known else Extent.unknown())


@steady
@given(extents(), st.sampled_from([None, -3, 0, 4]))
def test_unknown_stays_unknown(a, factor):
    unknown = Extent.unknown()
    assert not a.add(unknown).known
    assert not unknown.add(a, -1).known
    assert not unknown.retype("tokens").known
    assert factor is None or not unknown.scale(factor).known
    assert beyond(a, unknown) is None
    assert beyond(unknown, a) is None


@steady
@given(extents(unknown=False), extents(unknown=False))
def test_beyond_is_only_claimed_where_a_batch_shows_it(reader, writer):
    if beyond(reader, writer):
        batch = {(unit, state, tag): count for unit in UNITS for state, count in WIDE.items() for tag in ("", "a", "b")}
        assert value(reader, batch) > value(writer, batch)


@steady
@given(extents(), extents(), extents())
def test_beyond_is_a_strict_order(a, b, c):
    assert beyond(a, a) is not True
    assert not (beyond(a, b) and beyond(b, a))
    if beyond(a, b) and beyond(b, c):
        assert beyond(a, c)


@steady
@given(extents(unit="requests", unknown=False), extents(unit="tokens", unknown=False))
def test_counts_of_two_units_are_never_compared(a, b):
    if a.terms and b.terms:
        assert beyond(a, b) is None
        assert beyond(b, a) is None


@steady
@given(extents(unit="tokens", unknown=False), st.sampled_from(["", "x"]), states, factors)
def test_a_count_of_unsure_state_proves_nothing(other, tag, state, factor):
    unsure = Extent.of(Atom("tokens", UNSURE, tag)).scale(factor)
    assert unsure.state == UNSURE
    certain = Extent.of(Atom("tokens", state))
    assert beyond(unsure, certain) is None
    assert beyond(certain, unsure) is None
    assert unsure.add(other).state == UNSURE


@steady
@given(extents(unknown=False), st.sampled_from(["requests", "tokens"]))
def test_a_change_of_unit_keeps_the_states(extent, unit):
    if extent.terms:
        assert extent.retype(unit).unit == unit
        assert extent.retype(unit).state == extent.state


COUNTS = {
    "num_reqs + 1": "live requests + 1",
    "2 * num_reqs": "2 x live requests",
    "num_reqs * self.uniform_decode_query_len": "live tokens",
    "num_reqs_padded * (self.num_speculative_steps + 1)": "padded tokens",
    "num_tokens_padded // self.uniform_decode_query_len": "padded requests",
    "num_tokens_padded // 3": None,
    "query_start_loc[-1]": "live tokens",
    "int(query_start_loc[-1].item())": "live tokens",
    "query_start_loc[num_reqs]": "live tokens",
    "query_start_loc[0]": None,
    "query_start_loc[self.somewhere]": None,
    "self.seq_lens.shape[0]": "capacity requests",
    "self.seq_lens.size(0)": "capacity requests",
    "self.seq_lens.numel()": "capacity requests",
    "len(self.seq_lens)": "capacity requests",
    "self.seq_lens[:num_reqs].shape[0]": "live requests",
    "self.seq_lens[:num_reqs_padded].shape[0]": "padded requests",
    "self.offsets.shape[0] - 1": "capacity requests",
    "batch_desc.num_tokens": "padded tokens",
    "batch_desc.num_reqs": "padded requests",
    "self.pad_for_cudagraph(num_scheduled_tokens)": "padded tokens",
    "max(num_reqs, num_reqs_padded)": "padded requests",
    "min(num_reqs, self.max_num_reqs)": "live requests",
    "max(num_reqs_padded, self.dirty)": None,
    "max(self.max_num_reqs, self.dirty)": "capacity requests",
    "num_reqs_padded or num_reqs": "padded requests",
    "self.mystery": None,
    "self.live()": "live requests",
    "self.both(num_reqs)[1]": None,
    "num_scheduled.sum()": "live tokens",
    "cast(int, num_reqs)": "live requests",
}


def test_expressions_have_the_extent_that_a_reader_gives_them(facts):
    head = """\
import torch

class Runner:
    def __init__(self, config):
        self.max_num_reqs = config.max_num_seqs
        self.seq_lens = torch.zeros(self.max_num_reqs)
        self.offsets = torch.zeros(self.max_num_reqs + 1)

    def live(self):
        return self.num_reqs
"""
    parameters = "self, num_reqs, num_reqs_padded, num_tokens_padded, num_scheduled_tokens, query_start_loc, batch_desc, num_scheduled"
    steps = [f"\n    def step_{n}({parameters}):\n        it = {expression}\n        return it\n" for n, expression in enumerate(COUNTS)]
    described = facts({"engine.py": head + "".join(steps)}, "engine.py")
    told = {
        function["symbol"]: {name["name"]: name["extent"] for name in function["names"]}.get("it") for function in described["functions"]
    }
    assert {expression: told[f"Runner.step_{n}"] for n, expression in enumerate(COUNTS)} == COUNTS


ORDER = ["num_reqs", "num_reqs_padded", "max_num_reqs"]


def test_where_ways_meet_a_reader_may_see_the_most_and_a_writer_may_have_written_the_least(facts):
    """Over all pairs of states, in both branches of a test."""
    pairs = [(a, b) for a in range(3) for b in range(3)]
    text = "import torch\n\nclass Runner:\n    def __init__(self, config):\n        self.seq_lens = torch.zeros(config.max_num_seqs)\n"
    for a, b in pairs:
        text += (
            f"\n    def step_{a}{b}(self, wide, rows, num_reqs, num_reqs_padded, max_num_reqs):\n"
            f"        if wide:\n            count = {ORDER[a]}\n        else:\n            count = {ORDER[b]}\n"
            "        self.seq_lens[:count].copy_(rows)\n        return self.model(self.seq_lens[:count])\n"
        )
    described = facts({"engine.py": text}, "engine.py")
    assert len(described["functions"]) == len(pairs) + 1
    for a, b in pairs:
        (function,) = [f for f in described["functions"] if f["symbol"] == f"Runner.step_{a}{b}"]
        (buffer,) = function["buffers"]
        seen = {event["kind"]: event["extent"] for event in buffer["events"] if event["extent"]}
        assert seen == {"write": f"{list(RANK)[min(a, b)]} requests", "read": f"{list(RANK)[max(a, b)]} requests"}
