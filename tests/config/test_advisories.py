"""Advisories are OSV records, their ranges work, and each condition names known facts."""

from __future__ import annotations

import re

import jsonschema
import pytest

from graphlint.config.advisories import affects, load_advisories
from graphlint.config.versions import parse_version

#: the parts of OSV schema 1.x that the records use, as its published description has them
OSV = {
    "type": "object",
    "required": ["id", "modified"],
    "properties": {
        "schema_version": {"type": "string", "pattern": r"^1\.\d+\.\d+$"},
        "id": {"type": "string", "pattern": r"^[A-Z][A-Za-z]+-[\w.-]+$"},
        "modified": {"$ref": "#/$defs/time"},
        "published": {"$ref": "#/$defs/time"},
        "withdrawn": {"$ref": "#/$defs/time"},
        "aliases": {"type": "array", "items": {"type": "string"}},
        "related": {"type": "array", "items": {"type": "string"}},
        "summary": {"type": "string"},
        "details": {"type": "string"},
        "affected": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "package": {
                        "type": "object",
                        "required": ["ecosystem", "name"],
                        "properties": {"ecosystem": {"type": "string"}, "name": {"type": "string"}, "purl": {"type": "string"}},
                    },
                    "ranges": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["type", "events"],
                            "properties": {
                                "type": {"enum": ["GIT", "SEMVER", "ECOSYSTEM"]},
                                "events": {
                                    "type": "array",
                                    "minItems": 1,
                                    "contains": {"required": ["introduced"]},
                                    "items": {
                                        "type": "object",
                                        "minProperties": 1,
                                        "maxProperties": 1,
                                        "properties": {k: {"type": "string"} for k in ("introduced", "fixed", "last_affected", "limit")},
                                        "additionalProperties": False,
                                    },
                                },
                            },
                            "not": {
                                "properties": {
                                    "events": {
                                        "allOf": [{"contains": {"required": ["fixed"]}}, {"contains": {"required": ["last_affected"]}}]
                                    }
                                }
                            },
                        },
                    },
                    "versions": {"type": "array", "items": {"type": "string"}},
                    "ecosystem_specific": {"type": "object"},
                    "database_specific": {"type": "object"},
                },
                "additionalProperties": False,
            },
        },
        "references": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "url"],
                "properties": {
                    "type": {
                        "enum": [
                            "ADVISORY",
                            "ARTICLE",
                            "DETECTION",
                            "DISCUSSION",
                            "REPORT",
                            "FIX",
                            "INTRODUCED",
                            "GIT",
                            "PACKAGE",
                            "EVIDENCE",
                            "WEB",
                        ]
                    },
                    "url": {"type": "string", "format": "uri"},
                },
            },
        },
        "database_specific": {"type": "object"},
    },
    "additionalProperties": False,
    "$defs": {"time": {"type": "string", "format": "date-time", "pattern": r"Z$"}},
}
SPECIFIC = {
    "type": "object",
    "required": ["severity", "when", "workaround", "setting"],
    "properties": {
        "severity": {"enum": ["error", "warning", "info"]},
        "when": {"type": "array", "minItems": 1, "items": {"type": "object", "minProperties": 1}},
        "workaround": {"type": "string", "minLength": 5},
        "setting": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}
RECORDS = load_advisories()


@pytest.mark.parametrize("record", RECORDS, ids=[r["id"] for r in RECORDS])
def test_a_record_is_osv(record):
    jsonschema.Draft202012Validator(OSV, format_checker=jsonschema.FormatChecker()).validate(record)
    jsonschema.validate(record["database_specific"], SPECIFIC)
    assert re.fullmatch(r"GRAPHLINT-\d{4}-\d{4}", record["id"])
    assert record["references"], "every advisory links a thread"
    assert record["affected"][0]["package"] == {"ecosystem": "PyPI", "name": "vllm"}


def test_the_validator_can_fail():
    broken = {**RECORDS[0], "affected": [{"ranges": [{"type": "ECOSYSTEM", "events": [{"fixed": "1"}]}]}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, OSV)


def test_ids_are_unique_and_ranges_are_half_open():
    assert len({r["id"] for r in RECORDS}) == len(RECORDS) >= 20
    record = {"affected": [{"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0.13.0"}, {"fixed": "0.18.0"}]}]}]}
    assert [affects(record, parse_version(v)) for v in ("0.12.0", "0.13.0", "0.17.1", "0.18.0")] == [False, True, True, False]
    last = {"affected": [{"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"last_affected": "0.18.0"}]}]}]}
    assert [affects(last, parse_version(v)) for v in ("0.1.0", "0.18.0", "0.18.1")] == [True, True, False]


def test_conditions_name_known_facts(check):
    from graphlint.config.advisories import _facts

    resolved = check("vllm serve m", version="0.33.0").checked[0].resolved[0]
    known = set(_facts(resolved))
    used = {key for r in RECORDS for condition in r["database_specific"]["when"] for key in condition}
    assert used <= known
