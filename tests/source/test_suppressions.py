from graphlint.source.suppressions import find_suppressions


def spoken_for(text):
    return [(one.comment_line, one.line, one.ids) for one in find_suppressions(text)]


def test_trailing_comments_speak_for_their_line():
    assert spoken_for("a = 1\nb = 2  # graphlint: ignore[GL201] filled by the kernel\n") == [(2, 2, ("GL201",))]


def test_a_comment_alone_speaks_for_the_next_code_line():
    text = "# graphlint: ignore[GL2, gl301]\n# more about it\n\nb = 2\n"
    assert spoken_for(text) == [(1, 4, ("GL2", "GL301"))]


def test_without_brackets_every_rule_is_meant():
    (one,) = find_suppressions("b = 2  # noqa  # graphlint: ignore because\n")
    assert one.ids == ()
    assert one.covers("GL999") == ""
    assert (one.column, one.end_column) == (16, 35)


def test_strings_and_other_words_do_not_count():
    assert spoken_for('x = "# graphlint: ignore"\ny = 1  # graphlint: ignored\nz = 1  # graphlint: assume n <= 4\n') == []


def test_inside_a_call_the_comment_speaks_for_its_own_line():
    assert spoken_for("f(\n    a,  # graphlint: ignore[GL301]\n    b,\n)\n") == [(2, 2, ("GL301",))]


def test_comments_before_a_syntax_error_are_still_read():
    assert spoken_for("a = 1  # graphlint: ignore\nx = (\n") == [(1, 1, ())]


def test_prefixes_cover_their_family_only():
    (one,) = find_suppressions("b = 2  # graphlint: ignore[GL2]\n")
    assert one.covers("GL204") == "GL2"
    assert one.covers("GL301") is None
