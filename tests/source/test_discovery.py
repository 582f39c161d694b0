import os

import pytest

from graphlint.source.discovery import discover


def test_files_are_sorted_and_spelled_from_the_current_folder(tree):
    root = tree({"pkg/b.py": "", "pkg/a.py": "", "pkg/sub/c.py": "", "pkg/notes.txt": "", "top.py": ""})
    expected = ["pkg/a.py", "pkg/b.py", "pkg/sub/c.py"]
    assert discover(["pkg"]).files == expected
    assert discover([str(root / "pkg")]).files == expected
    assert discover(["./pkg/", "pkg/a.py"]).files == expected
    assert discover(["."]).files == [*expected, "top.py"]


def test_a_tree_elsewhere_keeps_the_given_spelling(tree, monkeypatch):
    root = tree({"one/a.py": "", "two/b.py": ""})
    monkeypatch.chdir(root / "one")
    assert discover(["../two"]).files == ["../two/b.py"]
    assert discover([str(root / "two")]).files == [f"{root.as_posix()}/two/b.py"]


def test_hidden_folders_environments_and_caches_are_skipped(tree):
    tree({
        "a.py": "", ".hidden/x.py": "", "env/pyvenv.cfg": "", "env/lib/x.py": "", "conda/conda-meta/history": "", "conda/x.py": "",
        "node_modules/x.py": "", "__pycache__/x.py": "",
    })
    assert discover(["."]).files == ["a.py"]


def test_named_folders_and_files_are_taken_although_they_would_be_skipped(tree):
    tree({
        ".git/HEAD": "", ".gitignore": "build/\ngen.py\n", "build/a.py": "", "build/sub/b.py": "", "gen.py": "", ".hidden/x.py": "",
        "script": "",
    })
    assert discover(["."]).files == []
    assert discover(["build", "gen.py", ".hidden", "script"]).files == [".hidden/x.py", "build/a.py", "build/sub/b.py", "gen.py", "script"]


def test_gitignore_patterns_of_nested_files(tree):
    tree({
        ".git/HEAD": "",
        ".gitignore": "# comment\n*_gen.py\n/only_root.py\nout\nsub/**/deep.py\n[broken\n",
        "x_gen.py": "", "only_root.py": "", "a.py": "", "out/b.py": "", "lib.out/c.py": "",
        "sub/only_root.py": "", "sub/q/r/deep.py": "", "sub/.gitignore": "!keep_gen.py\nlocal.py\n", "sub/keep_gen.py": "",
        "sub/local.py": "", "sub/x_gen.py": "", "local.py": "",
    })
    expected = ["a.py", "lib.out/c.py", "local.py", "sub/keep_gen.py", "sub/only_root.py"]
    assert discover(["."]).files == expected
    assert discover(["sub"]).files == ["sub/keep_gen.py", "sub/only_root.py"]  # the files above count as well
    assert "sub/local.py" in discover(["."], respect_gitignore=False).files


@pytest.mark.parametrize("pattern", ["a*", "*.p?", "*.[p]y", "a.py", "a.py  ", "*a.py"])
def test_every_way_to_write_a_pattern_of_a_python_file(tree, pattern):
    tree({".gitignore": pattern + "\n", "a.py": "", "b.py": ""})
    assert discover(["."]).files == ([] if pattern in ("*.p?", "*.[p]y") else ["b.py"])


def test_link_loops_end_and_linked_files_are_not_counted_twice(tree):
    root = tree({"pkg/a.py": "", "elsewhere/b.py": ""})
    os.symlink("..", root / "pkg" / "loop")
    os.symlink("a.py", root / "pkg" / "alias.py")
    os.symlink("../elsewhere/b.py", root / "pkg" / "linked.py")
    os.symlink("nowhere.py", root / "pkg" / "dangling.py")
    assert discover(["pkg"]).files == ["pkg/a.py", "pkg/linked.py"]


def test_missing_and_empty_paths_are_told_apart(tree):
    tree({"docs/readme.txt": "", "a.py": ""})
    found = discover(["a.py", "docs", "gone", "gone.py"])
    assert (found.files, found.missing, found.empty) == (["a.py"], ["gone", "gone.py"], ["docs"])
