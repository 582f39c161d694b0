import json
from pathlib import Path

import jsonschema
import pytest

from graphlint import __version__
from graphlint.report import json as json_format

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/graphlint-report-1.schema.json").read_text())
KEYS = ["rule", "name", "severity", "confidence", "path", "line", "column", "end_line", "end_column", "symbol", "message", "buffer",
        "trace", "witness", "fix", "fingerprint"]


def test_the_document_follows_its_schema_in_a_fixed_key_order(outcome):
    document = json.loads(json_format.render(outcome, color=False))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document, SCHEMA)
    assert list(document) == ["schema", "tool", "findings", "errors", "stats"]
    assert document["tool"] == {"name": "graphlint", "version": __version__}
    assert [list(finding) for finding in document["findings"]] == [KEYS, KEYS]
    assert document["errors"] == [{"path": "engine/old.py", "kind": "syntax", "message": "line 4: does not parse"}]
    assert document["stats"] == {"files": 3, "parsed": 2, "cached": 1, "seconds": 0.25}


def test_a_finding_is_complete(outcome):
    short, stale_tail = json.loads(json_format.render(outcome, color=False))["findings"]
    assert (short["end_line"], short["end_column"], short["symbol"], short["buffer"]) == (2, 1, "", None)
    assert (short["trace"], short["witness"], short["fix"]) == ([], None, None)
    assert stale_tail["trace"][0] == {"path": "engine/runner.py", "line": 3, "label": "max_num_reqs lanes"}
    assert stale_tail["witness"]["stale"] == [3, 4]
    assert stale_tail["fix"]["edits"][0]["column"] == 45
    assert len(stale_tail["fingerprint"]) == 20


def test_the_schema_refuses_what_is_not_in_it(outcome):
    document = json.loads(json_format.render(outcome, color=False))
    document["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError, match="fatal"):
        jsonschema.validate(document, SCHEMA)
