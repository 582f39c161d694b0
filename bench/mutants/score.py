"""Does graphlint notice a mutant?

The mutated file is given on standard input in place of the one on disk, so that the rest of the release is read from the cache of
facts. A mutant counts as noticed when a finding appears that the release itself does not have, in the mutant's file or about its
buffer or symbol; findings are the same when rule, path, symbol and message are. `located` asks for more: the finding must lie in the
mutant's symbol or name its buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec

from bench.checker import Checker, run_check
from bench.mutants.sites import KINDS, Kind, Mutant, mutants_of_package
from bench.mutants.verdicts import verdicts
from bench.releases import Release, package_dir
from graphlint.finding import Finding

Key = tuple[str, str, str, str]


class MutantScore(msgspec.Struct, frozen=True):
    """What became of one mutant."""

    id: str
    kind: Kind
    verdict: Literal["harmful", "redundant", "unread"]
    line: int
    text: str
    noticed: bool
    located: bool
    rules: tuple[str, ...]
    findings: tuple[str, ...]


class MutantTable(msgspec.Struct, frozen=True):
    """Every mutant that was tried on one release."""

    release: str
    scores: list[MutantScore]
    #: listed ids that the release does not have
    unknown: list[str]


def key(finding: Finding) -> Key:
    """What makes a finding the same on a release and its mutant."""
    return finding.rule, finding.path, finding.symbol, finding.message


def select(release: Release, *, kinds: Sequence[str] = (), unread: bool = False, match: str = "") -> tuple[list[Mutant], list[str]]:
    """(mutants to try, listed ids that do not exist): those with a verdict, and the others too if `unread`."""
    listed = verdicts(release)
    package = package_dir(release)
    files = None if unread or not listed else frozenset(one.partition("::")[0] for one in listed)
    known = mutants_of_package(package, only=files)
    unknown = sorted(set(listed) - {mutant.id for mutant in known})
    wanted = [
        mutant
        for mutant in known
        if (unread or mutant.id in listed) and (not kinds or mutant.kind in kinds) and match in mutant.id
    ]
    return wanted, unknown


def score_mutants(
    release: Release, mutants: Iterable[Mutant], checker: Checker, *, jobs: int = 2, progress: Callable[[MutantScore], None] | None = None
) -> list[MutantScore]:
    """Try mutants of one release, `jobs` at a time, in the order given."""
    listed = verdicts(release)
    package = package_dir(release)
    base = {key(finding) for finding in checker.findings(release)}

    def judge(mutant: Mutant) -> MutantScore:
        hits = [finding for finding in mutated_findings(package, mutant) if key(finding) not in base and about(finding, mutant)]
        score = MutantScore(
            id=mutant.id, kind=mutant.kind, verdict=listed.get(mutant.id, "unread"), line=mutant.line, text=mutant.text,
            noticed=bool(hits), located=any(locates(finding, mutant) for finding in hits),
            rules=tuple(sorted({finding.rule for finding in hits})),
            findings=tuple(f"{finding.path}:{finding.line}: {finding.rule} {finding.message}" for finding in hits),
        )
        if progress:
            progress(score)
        return score

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(judge, mutants))


def mutated_findings(package: Path, mutant: Mutant) -> list[Finding]:
    """What graphlint says of the package with that one file spoilt."""
    spoilt = mutant.spoil((package.parent / mutant.path).read_bytes())
    return run_check(package, "-", "--stdin-filename", mutant.path, "--jobs", "1", stdin=spoilt).findings


def about(finding: Finding, mutant: Mutant) -> bool:
    """Whether a new finding can be put down to the mutant."""
    names = {mutant.buffer.rpartition(".")[2], mutant.symbol.rpartition(".")[2], mutant.path.rpartition("/")[2]}
    return finding.path == mutant.path or any(name and name in f"{finding.symbol} {finding.message}" for name in names)


def locates(finding: Finding, mutant: Mutant) -> bool:
    """Whether a new finding leads to the very statement: in its symbol, or about its buffer."""
    buffer = mutant.buffer.rpartition(".")[2].removesuffix("_ptr")
    return (finding.path == mutant.path and finding.symbol == mutant.symbol) or buffer in (finding.buffer or "").split(".")


def table_rows(scores: Iterable[MutantScore]) -> list[tuple[str, str, int, int, int]]:
    """(verdict, kind, noticed, located, all); verdicts in the order harmful, redundant, unread."""
    groups: dict[tuple[str, str], list[MutantScore]] = {}
    for score in scores:
        groups.setdefault((score.verdict, score.kind), []).append(score)
    order = ("harmful", "redundant", "unread")
    return [
        (verdict, kind, sum(one.noticed for one in group), sum(one.located for one in group), len(group))
        for (verdict, kind), group in sorted(groups.items(), key=lambda item: (order.index(item[0][0]), KINDS.index(item[1][0].kind)))
    ]
