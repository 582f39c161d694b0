"""`check` on a folder judges what starts servers too: scripts, manifests, documents."""

from __future__ import annotations

SCRIPT = "#!/bin/bash\nvllm serve some/model --enforce-eager --compilation-config '{\"cudagraph_mode\": \"FULL\"}'\n"


def test_a_script_beside_the_code_is_judged(tree, graphlint):
    tree({"engine/__init__.py": "", "engine/deploy/run.sh": SCRIPT})
    result = graphlint("check", "engine", "--output-format", "concise")
    assert result.returncode == 1
    assert "engine/deploy/run.sh:2:" in result.stdout
    assert "GL611" in result.stdout, "graphs are asked for and switched off in one command"


def test_a_folder_of_manifests_alone_is_no_empty_folder(tree, graphlint):
    tree({"deploy/run.sh": SCRIPT})
    result = graphlint("check", "deploy")
    assert result.returncode == 1
    assert "no Python file" not in result.stderr


def test_deployments_can_be_left_out(tree, graphlint):
    tree({"engine/__init__.py": "", "engine/run.sh": SCRIPT})
    assert graphlint("check", "engine", "--no-deployments").returncode == 0


def test_a_comment_silences_a_deployment(tree, graphlint):
    tree({"engine/__init__.py": "", "engine/run.sh": SCRIPT.replace("vllm serve", "# graphlint: ignore[GL611] for debugging\nvllm serve")})
    assert "GL611" not in graphlint("check", "engine").stdout


def test_a_script_without_a_server_is_not_opened_as_one(tree, graphlint):
    tree({"engine/__init__.py": "", "engine/run.sh": "#!/bin/bash\necho vllm\n"})
    assert graphlint("check", "engine").returncode == 0


def test_a_file_that_has_not_changed_is_not_judged_again(tree, graphlint, monkeypatch):
    env = {"GRAPHLINT_CACHE_DIR": "cache"}
    tree({"engine/run.sh": SCRIPT})
    first = graphlint("check", "engine", "--output-format", "concise", env=env).stdout

    def never(*_):
        raise AssertionError("judged again")

    monkeypatch.setattr("graphlint.config.check.check_files", never)
    again = graphlint("check", "engine", "--output-format", "concise", env=env).stdout
    assert [line for line in again.splitlines() if "[GL" in line] == [line for line in first.splitlines() if "[GL611]" in line] != []


def test_what_is_kept_from_the_last_run_is_what_a_new_run_says(tree, graphlint):
    """The second run takes the outcome from the cache; a file that changes, or that another one names, is judged anew."""
    env = {"GRAPHLINT_CACHE_DIR": "cache"}
    named = "#!/bin/bash\nvllm serve some/model --config serve.yaml\n"
    tree({"engine/run.sh": SCRIPT, "engine/named.sh": named, "engine/serve.yaml": "enforce-eager: true\n"})

    def found(*options):
        result = graphlint("check", "engine", "--output-format", "concise", *options, env=env)
        return sorted(line.split(" ")[0] for line in result.stdout.splitlines() if "[GL" in line)

    first = found()
    assert any("run.sh:2" in place for place in first)
    assert found() == first == found("--no-cache")
    tree({"engine/serve.yaml": "enforce-eager: true\ncompilation-config:\n  cudagraph_mode: FULL\n"})
    assert found() == found("--no-cache")
    tree({"engine/run.sh": SCRIPT.replace(" --enforce-eager", "")})
    assert not any("run.sh" in place for place in found())
