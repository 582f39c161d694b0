"""Runs the deployment rules over files or a command line: read, resolve, judge."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphlint.config.answer import Resolved, resolve_deployment
from graphlint.config.deployment import Deployment
from graphlint.config.pack import load_rules
from graphlint.config.readers import Read, candidate, read_text
from graphlint.config.rules_api import DeploymentRule
from graphlint.config.sglang import SglangDeployment, resolve_sglang
from graphlint.config.situation import Given
from graphlint.config.tables import Tables, bundled_versions, load_release, nearest_release
from graphlint.config.versions import Version, parse_version
from graphlint.config.words import Note, Span, Word
from graphlint.finding import Finding, RunError, Severity

#: releases that answer for a deployment which states none
RECENT = ("0.33.0", "0.25.1", "0.19.1")
#: characters of YAML from which a pool of processes reads faster than one
_POOL_FROM = 400_000


@dataclass
class Options:
    """What the user says for the whole run."""

    given: Given = field(default_factory=Given)
    version: Version | None = None
    #: tables of a checkout, which win over the bundled ones
    tables: Tables | None = None
    rules: Sequence[DeploymentRule] | None = None


@dataclass
class Checked:
    """One deployment with its answers: one release where the version is stated, several otherwise."""

    deployment: Deployment
    resolved: list[Resolved] = field(default_factory=list)
    sglang: SglangDeployment | None = None
    notes: list[str] = field(default_factory=list)


@dataclass
class Result:
    """Everything a run has to say."""

    checked: list[Checked] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    errors: list[RunError] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    files: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def check_files(paths: Iterable[tuple[str, bytes]], options: Options) -> Result:
    """Checks files given as (path, bytes); those that hold no deployment are passed over."""
    start = time.perf_counter()
    result = Result()
    texts: list[tuple[str, str]] = []
    for path, data in paths:
        result.files += 1
        if candidate(path, data):
            texts.append((path, data.decode("utf-8", "replace")))
    result.texts = dict(texts)
    for path, read in _read_all(texts):
        if isinstance(read, str):
            result.errors.append(RunError(path, "internal", f"could not be read as configuration: {read}"))
            continue
        for note in read.notes:
            if note.kind in ("malformed", "continuation"):
                result.findings.append(_malformed(note))
            else:
                result.notes.append(note)
        for deployment in read.deployments:
            _check_guarded(deployment, options, result)
    _finish(result)
    result.seconds = time.perf_counter() - start
    return result


def _read_all(texts: list[tuple[str, str]]) -> Iterator[tuple[str, Read | str]]:
    """What each file holds, or why it could not be read. Much YAML is parsed by a pool: the parser is slow, and files are independent."""
    bulk = sum(len(text) for path, text in texts if path.endswith((".yaml", ".yml")))
    if bulk < _POOL_FROM or (os.cpu_count() or 1) < 2:
        yield from map(_read_one, texts)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(max_workers=min(os.cpu_count() or 2, 4)) as pool:
        yield from pool.map(_read_one, texts, chunksize=4)


def _read_one(item: tuple[str, str]) -> tuple[str, Read | str]:
    path, text = item
    try:
        return path, read_text(path, text)
    except Exception as error:  # noqa: BLE001  one file's fault must not lose the others
        return path, f"{type(error).__name__}: {error}"


def check_text(path: str, text: str, options: Options) -> Result:
    """Checks one text, as `check_files` does a file."""
    return check_files([(path, text.encode())], options)


def check_deployments(deployments: Iterable[Deployment], options: Options, text: tuple[str, str] | None = None) -> Result:
    """Checks deployments that are at hand, such as those of a command line."""
    result = Result()
    if text is not None:
        result.texts[text[0]] = text[1]
    for deployment in deployments:
        _check_guarded(deployment, options, result)
    _finish(result)
    return result


def _malformed(note: Note) -> Finding:
    # annotated continuations are a habit of documents, and break there too; in a script they break the server
    severity: Severity = (
        "warning" if note.kind == "continuation" and note.path.endswith((".md", ".mdx", ".rst", ".yaml", ".yml")) else "error"
    )
    return Finding(
        rule="GL618",
        name="rejected-argument",
        severity=severity,
        confidence="high",
        path=note.path,
        line=note.line,
        end_line=note.line,
        message=note.message,
    )


def _finish(result: Result) -> None:
    unique: dict[tuple[Any, ...], Finding] = {}
    for finding in result.findings:
        key = (finding.path, finding.line, finding.rule, finding.message)
        if key not in unique:
            unique[key] = finding
        elif finding.symbol and finding.symbol not in unique[key].symbol:
            held = unique[key].symbol
            if held.count(",") < 2:
                unique[key].symbol = f"{held}, {finding.symbol}" if held else finding.symbol
            elif not held.endswith("..."):
                unique[key].symbol = held + ", ..."
    result.findings = sorted(unique.values(), key=lambda f: (f.path, f.line, f.column, f.rule, f.message))


def versions_for(deployment: Deployment, options: Options) -> tuple[list[Version], str]:
    """The releases to answer for, and a note about how they were found."""
    if options.version is not None:
        return [options.version], ""
    if deployment.version is not None:
        return [parse_version(deployment.version)], f"version {deployment.version} from {deployment.version_source}"
    if deployment.minimum is not None:
        newest = bundled_versions()[-1]
        try:
            low = parse_version(deployment.minimum)
        except ValueError:  # `nightly`, `main`: newer than every release
            return [newest], f"{deployment.version_source}: answered for {newest}"
        return ([newest] if low >= newest else [newest, low]), deployment.version_source
    why = f" ({deployment.version_source})" if deployment.version_source else ""
    return [parse_version(v) for v in RECENT], f"no version stated{why}: answered for {', '.join(RECENT)}; give --vllm-version"


def _check_guarded(deployment: Deployment, options: Options, result: Result) -> None:
    try:
        _check(deployment, options, result)
    except Exception as error:  # noqa: BLE001  one deployment's fault must not lose the others
        span = deployment.span
        result.errors.append(RunError(span.path, "internal", f"could not be resolved: {type(error).__name__}: {error}", span.line))


def _check(deployment: Deployment, options: Options, result: Result) -> None:
    checked = Checked(deployment)
    result.checked.append(checked)
    rules = options.rules if options.rules is not None else load_rules()[0]
    if deployment.engine == "sglang":
        checked.sglang = resolve_sglang(deployment, options.given, options.version)
        for rule in rules:
            if rule.check_sglang is not None:
                result.findings += _guard(rule, rule.check_sglang, checked.sglang, result)
        return
    given = options.given.on(deployment.gpu)
    versions, note = versions_for(deployment, options)
    if note:
        checked.notes.append(note)
    per_version: list[list[Finding]] = []
    for version in versions:
        tables, remark = tables_for(version, options)
        if tables is None:
            checked.notes.append(remark)
            result.notes.append(Note(deployment.span.path, deployment.span.line, remark))
            continue
        if remark:
            checked.notes.append(remark)
        resolved = resolve_deployment(deployment, version, tables, given, _yaml_loader(deployment))
        checked.resolved.append(resolved)
        found: list[Finding] = []
        for rule in rules:
            if rule.check is not None:
                found += _guard(rule, rule.check, resolved, result)
        per_version.append(found)
    result.findings += _agreed(per_version, checked, deployment)


def _agreed(per_version: list[list[Finding]], checked: Checked, deployment: Deployment) -> list[Finding]:
    """One release: its findings. Several: those of the newest as they are; older ones only named, with the releases they concern."""
    if len(per_version) <= 1:
        return per_version[0] if per_version else []
    out: dict[tuple[str, int, str], Finding] = {}
    where: dict[tuple[str, int, str], list[str]] = {}
    for resolved, found in zip(checked.resolved, per_version, strict=True):
        for finding in found:
            key = (finding.rule, finding.line, _without_version(finding.message, resolved.version))
            out.setdefault(key, finding)
            where.setdefault(key, []).append(str(resolved.version))
    newest = str(checked.resolved[0].version)
    kept = []
    for key, finding in out.items():
        releases = where[key]
        if len(releases) < len(checked.resolved):
            if newest not in releases and deployment.minimum is None:
                finding.confidence = "low"
            finding.message += f" (in {', '.join(releases)})"
        kept.append(finding)
    return kept


def _without_version(message: str, version: Version) -> str:
    return message.replace(str(version), "")


def _guard(rule: DeploymentRule, check: Any, subject: Any, result: Result) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(check(subject))
    except Exception as error:  # noqa: BLE001  a rule's fault must not lose the others' findings
        result.errors.append(RunError(subject.deployment.span.path, "rule", f"{rule.id} crashed: {type(error).__name__}: {error}"))
    return found


def tables_for(version: Version, options: Options) -> tuple[Tables | None, str]:
    """The tables to use, and what to say where they are not exactly those of the release."""
    if options.tables is not None:
        return options.tables, ""
    known = bundled_versions()
    if version in known:
        return load_release(version), ""
    nearest = nearest_release(version)
    if nearest is None:
        return None, f"vLLM {version} is older than the modelled releases ({known[0]} to {known[-1]}): no answer"
    if version > known[-1]:
        return (
            load_release(nearest),
            f"vLLM {version} is newer than the modelled releases (up to {known[-1]}): answered with the tables and logic of {nearest}; "
            "give --vllm-checkout to read its own",
        )
    return load_release(nearest), f"vLLM {version} has no tables of its own: answered with those of {nearest}"


def _yaml_loader(deployment: Deployment) -> Any:
    def load(word: Word) -> list[tuple[str, Any, Span]] | None:
        if not word.known:
            return None
        from graphlint.config.readers.yaml_files import yaml_entries

        text = deployment.files.get(word.text)
        path = word.span.path
        if text is None:
            for base in (Path(os.path.dirname(deployment.span.path) or "."), Path()):
                target = base / word.text
                if target.is_file():
                    try:
                        text = target.read_text(encoding="utf-8", errors="replace")
                    except OSError:
                        return None
                    path = target.as_posix()
                    break
        if text is None:
            deployment.notes.append(
                Note(word.span.path, word.span.line, f"--config {word.text}: the file is not here, so what it sets is not known")
            )
            return None
        entries, _ = yaml_entries(text, path)
        return [(k, v, s) for k, v, s in entries]

    return load
