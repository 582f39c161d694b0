import pytest

from graphlint.source.files import collect, minimal_tokens
from graphlint.source.text import DecodeError, decode, split_lines


def test_declared_encodings_and_byte_order_marks():
    assert decode(b"\xef\xbb\xbfx = 1\n") == "x = 1\n"
    assert decode("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1")).endswith("'é'\n")
    assert decode("x = 'é'\n".encode()) == "x = 'é'\n"


@pytest.mark.parametrize(("data", "line", "words"), [
    (b"x = 1\ny = '\xff'\n", 2, ["byte 0xff", "offset 11", "line 2"]),
    (b"# coding: nonsense\n", 1, ["nonsense"]),
    (b"# coding: ascii\nx = '\xc3\xa9'\n", 2, ["ascii", "0xc3"]),
])
def test_what_cannot_be_decoded_names_the_place(data, line, words):
    with pytest.raises(DecodeError) as caught:
        decode(data)
    assert caught.value.line == line
    assert all(word in str(caught.value) for word in words)


def test_lines_end_where_python_ends_them():
    assert split_lines("a\x0cb\r\nc\u2028d\re") == ["a\x0cb", "c\u2028d", "e"]


def test_tokens_that_contain_another_token_are_dropped():
    assert minimal_tokens([b"num_reqs", b"num_reqs_padded", b"triton.jit", b"jit"]) == (b"jit", b"num_reqs")


def test_large_inputs_are_filtered_and_small_ones_are_not(tree):
    tree({"hit.py": "num_reqs = 1\n", "miss.py": "x = 1\n", "marked.py": "x = 1  # graphlint: ignore\n"})
    names = ["hit.py", "marked.py", "miss.py", "gone.py"]
    small = collect(names, [b"num_reqs"])
    assert [f.path for f in small.files] == ["hit.py", "marked.py", "miss.py"]
    assert [(e.path, e.kind) for e in small.errors] == [("gone.py", "io")]
    tree({"big.py": "# filler\n" * 200_000})
    large = collect([*names, "big.py"], [b"num_reqs"])
    assert [f.path for f in large.files] == ["hit.py"]
    assert [f.path for f in large.marked] == ["marked.py"]
