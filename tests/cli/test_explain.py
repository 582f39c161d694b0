"""`graphlint explain`, on the small engine."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from engine import DRAFTER, FILES, FILLED


def test_it_tells_what_is_believed_and_what_fired(tree, graphlint):
    tree(FILES)
    result = graphlint("explain", "engine/drafter.py:16")
    assert result.returncode == 0
    assert "Drafter.propose" in result.stdout
    assert "live requests" in result.stdout
    assert "GL301 stale-tail: reported (error, high confidence)" in result.stdout
    assert "engine/drafter.py:16: writes lanes up to `num_reqs` (live requests) only" in result.stdout


def test_it_tells_why_a_finding_is_not_reported(tree, graphlint):
    tree({**FILES, "graphlint.toml": ""})
    tree({"engine/drafter.py": DRAFTER.replace("copy_(idx_mapping)", "copy_(idx_mapping)  # graphlint: ignore[GL301] known")})
    assert "GL301 stale-tail: suppressed by a comment" in graphlint("explain", "engine/drafter.py:16").stdout
    tree({"engine/drafter.py": DRAFTER})
    graphlint("baseline", "create")
    tree({"graphlint.toml": 'baseline = "graphlint-baseline.txt"\n'})
    assert "GL301 stale-tail: known from the baseline" in graphlint("explain", "engine/drafter.py:16").stdout


def test_it_tells_what_no_rule_objects_to(tree, graphlint):
    tree({**FILES, "engine/drafter.py": FILLED, "graphlint.toml": ""})
    result = graphlint("explain", "engine/drafter.py:16")
    assert "No rule fired here." in result.stdout
    assert "No rule objects to: idx_mapping" in result.stdout
    document = json.loads(graphlint("explain", "engine/drafter.py:16", "--output-format", "json").stdout)
    assert document["without_findings"] == ["idx_mapping"]
    assert [event["kind"] for event in document["functions"][0]["buffers"][0]["events"]][:2] == ["write", "fill"]


def test_mistakes(tree, graphlint):
    tree(FILES)
    assert "is no PATH:LINE" in graphlint("explain", "engine/drafter.py").stderr
    assert "gone.py: no such file" in graphlint("explain", "gone.py:1").stderr
    tree({"engine/broken.py": "def f(:\n"})
    result = graphlint("explain", "engine/broken.py:1")
    assert result.returncode == 2
    assert "engine/broken.py:1: does not parse" in result.stderr
