"""One run: files, project, rules, suppressions, fingerprints, order, filters. Every failure of a part is an error of the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from graphlint import registry as registry_module
from graphlint.analysis import analyse
from graphlint.api import Rule
from graphlint.baseline.file import read
from graphlint.baseline.match import Matched, match
from graphlint.changes import since as changes_since
from graphlint.deployments import deployment_findings
from graphlint.finding import CONFIDENCES, SEVERITIES, Confidence, Finding, Grid, Proof, Report, RunError, Severity
from graphlint.fingerprints import set_fingerprints
from graphlint.registry import Registry
from graphlint.scope import find_context, find_scope, matching
from graphlint.settings import CheckOptions
from graphlint.source.discovery import Discovery
from graphlint.source.files import MARKER, SourceFile, SourceText, collect
from graphlint.source.suppressions import Suppression, find_suppressions

#: called with what is going on, how much of it is done, and how much there is
ProgressCallback = Callable[[str, int, int], None]

((UNUSED, UNUSED_NAME),) = registry_module.SHELL_RULES.items()
UNUSED_DOC = """\
A `# graphlint: ignore` comment that silences nothing.

## What it does
Reports a suppression comment, or one id in its brackets, that no finding matched in this run, and ids that no rule has.

## Why it matters
The fault was mended or has moved. A comment left behind would hide the next one on that line.

## Known problems
Not reported where the answer is not known: the file does not parse, or a rule it names did not run (`--select`, `--ignore`, a crash).

## Use instead
Delete the comment, or the id.
"""


class Outcome(msgspec.Struct):
    """A report, with what the terminal says beyond schema 1."""

    report: Report
    discovery: Discovery
    sources: SourceText
    #: findings that a comment silenced, and findings below the confidence or severity asked for
    suppressed: int = 0
    hidden: int = 0
    #: findings at or above this make the run fail
    failing: Severity = "warning"
    #: the rules of the run; None where there was no run
    rules: Registry | None = None
    baseline: Matched | None = None
    #: files that were read only to understand those reported on
    context: int = 0
    #: findings of this run that are not in the report, with the reason
    unreported: list[tuple[Finding, str]] = []
    #: configuration files that start a server
    configured: int = 0
    #: fingerprint of a finding -> what running its kernel showed
    proofs: dict[str, Proof] = {}
    #: what a page shows of the engine as a whole
    grids: list[Grid] = []

    def fails(self) -> bool:
        """Whether a finding reaches the failing severity."""
        return any(self.is_failure(finding) for finding in self.report.findings)

    def keep_sure(self, confidence: Confidence) -> None:
        """Hides findings that have become less sure than asked for."""
        shown = [finding for finding in self.report.findings if CONFIDENCES.index(finding.confidence) >= CONFIDENCES.index(confidence)]
        self.hidden += len(self.report.findings) - len(shown)
        self.unreported += [(finding, "below the confidence or severity asked for") for finding in _less(self.report.findings, shown)]
        self.report.findings = shown

    def is_failure(self, finding: Finding) -> bool:
        """Whether the finding alone makes the run fail."""
        return SEVERITIES.index(finding.severity) >= SEVERITIES.index(self.failing)


def _silent(what: str, done: int, total: int) -> None:
    """No progress is shown."""


def run_check(
    paths: Sequence[str],
    options: CheckOptions,
    *,
    given: Sequence[SourceFile] = (),
    rules: Registry | None = None,
    progress: ProgressCallback = _silent,
) -> Outcome:
    """Check `paths`; `given` are files whose bytes are at hand and that replace those on disk.

    Raises `PackError`, and for what is wrong in `options` `UnknownRule`, `BaselineError` or `ChangesError`, before anything is read;
    afterwards only the report tells of failures.
    """
    start = time.perf_counter()
    rules = registry_module.load(options.rule_packs) if rules is None else rules
    wanted = rules.select(options.select, options.ignore)
    for selectors in (*options.per_file_ignores.values(), tuple(options.severities)):
        rules.select(selectors)
    known = [] if options.baseline is None else read(options.baseline)
    changes = None if options.diff_base is None else changes_since(options.diff_base)
    progress("finding files", 0, 0)
    scope = find_scope(paths, options)
    discovery = scope.discovery
    context = find_context(paths, scope, options, given, rules.tokens)
    reported = {*scope.targets, *(file.path for file in given)}
    # The tokens of all rules, not only of the selected ones: what a rule sees must not depend on which others run.
    collected = collect([*scope.targets, *context], rules.tokens, given=given)
    sources = SourceText(given)
    missing = [RunError(path, "io", "no such file or folder") for path in discovery.missing]
    errors = [*rules.errors, *missing]
    elsewhere = set(context)
    errors.extend(error for error in collected.errors if error.path not in elsewhere)
    selected = [entry for entry in rules if entry.rule.id in wanted and isinstance(entry.rule, Rule)]
    outcome = analyse(collected.files, selected, jobs=options.jobs, cache=options.cache, engine=options.engine, progress=progress)
    errors.extend(error for error in outcome.errors if error.path not in elsewhere)
    stats = outcome.stats
    findings = outcome.findings
    crashed = {UNUSED, *outcome.crashed}
    stats.files = len(reported)
    findings = [finding for finding in findings if finding.path not in elsewhere]
    configured = 0
    if options.deployments and not given:
        deployed, unread, configured = deployment_findings(paths, wanted, cache=options.cache)
        findings.extend(deployed)
        errors.extend(unread)

    for pattern, selectors in options.per_file_ignores.items():
        silent = rules.select(selectors)
        matched = matching({finding.path for finding in findings}, [pattern], options)
        findings = [finding for finding in findings if finding.rule not in silent or finding.path not in matched]
    for selector in sorted(options.severities, key=len):  # the longest last: it is the most precise
        for finding in findings:
            if finding.rule in rules.matching(selector):
                finding.severity = options.severities[selector]
    # what two paths through the analysis say in the same words about the same place is one finding
    findings = sorted({(*_order(finding), finding.buffer): finding for finding in reversed(findings)}.values(), key=_order)
    set_fingerprints(findings, sources)
    broken = {error.path for error in errors}
    marked = [file.path for file in (*collected.files, *collected.marked) if MARKER in file.data and file.path in reported]
    comments = {path: find_suppressions("\n".join(sources.lines(path))) for path in marked}
    kept: list[Finding] = []
    silenced: list[Finding] = []
    for finding in findings:
        (silenced if _silenced(finding, comments.get(finding.path, ())) else kept).append(finding)
    unreported = [(finding, "suppressed by a comment") for finding in silenced]
    ran = set() if outcome.failed else wanted - crashed
    if UNUSED in wanted:
        unused = [
            one for path, found in comments.items() if path not in broken for one in _unused(path, found, ran, rules)
        ]
        set_fingerprints(unused, sources)
        kept = sorted([*kept, *unused], key=_order)
    matched_baseline = None
    if options.baseline is not None:
        matched_baseline = match(
            kept, known, options.baseline, sources, looked_at=[*discovery.files, *reported], broken=broken,
            ran={*ran, UNUSED} if UNUSED in wanted else ran,
        )
        unreported += [(finding, "known from the baseline") for finding in _less(kept, matched_baseline.new)]
        kept = matched_baseline.new
    if changes is not None:
        touched = [finding for finding in kept if changes.touch(finding)]
        unreported += [(finding, f"touches no line changed since {options.diff_base}") for finding in _less(kept, touched)]
        kept = touched
    shown = [finding for finding in kept if _reaches(finding, options)]
    unreported += [(finding, "below the confidence or severity asked for") for finding in _less(kept, shown)]
    stats.seconds = round(time.perf_counter() - start, 3)
    errors.sort(key=lambda error: (error.path, error.line, error.kind, error.message))
    return Outcome(
        Report(shown, errors, stats), discovery, sources, len(silenced), len(kept) - len(shown), options.failing_severity, rules,
        matched_baseline, len(context), unreported, configured,
    )


def _less(findings: Sequence[Finding], others: Sequence[Finding]) -> list[Finding]:
    """Those of `findings` that are not among `others`."""
    left = {id(finding) for finding in others}
    return [finding for finding in findings if id(finding) not in left]


def _order(finding: Finding) -> tuple[str, int, int, str, str]:
    return finding.path, finding.line, finding.column, finding.rule, finding.message


def _reaches(finding: Finding, options: CheckOptions) -> bool:
    """Whether the finding is sure enough and bad enough to be shown."""
    if CONFIDENCES.index(finding.confidence) < CONFIDENCES.index(options.min_confidence):
        return False
    return options.severity is None or SEVERITIES.index(finding.severity) >= SEVERITIES.index(options.severity)


def _silenced(finding: Finding, comments: Sequence[Suppression]) -> bool:
    """Whether a comment silences the finding: one that speaks for its first or its last line."""
    hit = False
    for comment in comments:
        if comment.line in (finding.line, finding.end_line):
            covered = comment.covers(finding.rule)
            if covered is not None:
                comment.used.add(covered)
                hit = True
    return hit


def _unused(path: str, comments: Sequence[Suppression], ran: set[str], rules: Registry) -> Iterable[Finding]:
    """GL001 for the comments of one file; `ran` are the rules that came to their end in this run."""
    every = set(rules.entries)
    for comment in comments:
        if not comment.ids:
            if not comment.used and every <= ran:
                yield _unused_finding(path, comment, "`# graphlint: ignore` silences nothing")
            continue
        for one in comment.ids:
            meant = {rule for rule in every if rule.startswith(one)}
            if not meant:
                if not rules.errors:  # the rule may be one that failed to load
                    yield _unused_finding(path, comment, f"`# graphlint: ignore[{one}]`: there is no rule {one}{rules.suggestion(one)}")
            elif one not in comment.used and meant <= ran:
                yield _unused_finding(path, comment, f"`# graphlint: ignore[{one}]` silences nothing")


def _unused_finding(path: str, comment: Suppression, message: str) -> Finding:
    return Finding(
        rule=UNUSED, name=UNUSED_NAME, severity="info", confidence="high", path=path, line=comment.comment_line, column=comment.column,
        end_line=comment.comment_line, end_column=comment.end_column, message=message,
    )
