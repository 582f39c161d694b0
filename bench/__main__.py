"""`python -m bench`: recall on real bugs, noise on releases, mutants, triage, speed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from bench import score as scoring
from bench.bugs import scored_bugs
from bench.checker import Checker, CheckError
from bench.mutants.score import MutantScore, MutantTable, score_mutants, select, table_rows
from bench.releases import Release, ReleaseError, package_dir, release_tree, verify
from bench.report import Figures, write_docs
from bench.show import render
from bench.text import table
from bench.timing import Timing, measure
from bench.triage import Triage, compare, load_entries, template

LATEST = ("vllm-0.33.0", "vllm-0.20.0", "sglang-0.5.23")


def _releases(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> list[Release]:
    """`vllm 0.33.0 sglang-0.5.23 ...`."""
    found: list[Release] = []
    pending = list(words)
    try:
        while pending:
            word = pending.pop(0)
            separated = "-" not in word and "=" not in word and bool(pending)
            found.append(Release.parse(f"{word}-{pending.pop(0)}" if separated else word))
    except ReleaseError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return found


releases_argument = click.argument("releases", nargs=-1, callback=_releases, metavar="[PROJECT VERSION]...")
json_option = click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures to this file as well.")


def _save(json_file: Path | None, figures: object) -> None:
    if json_file:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")


@click.group()
def main() -> None:
    """Measure graphlint on released engines. They are downloaded once, to $GRAPHLINT_CACHE or ~/.cache/graphlint/releases."""


@main.command()
@releases_argument
@click.option("--scored", is_flag=True, help="Also every release that a scored bug names.")
@click.option("--verify", "verified", is_flag=True, help="Compare the extracted files with the checksum taken at download.")
def fetch(releases: list[Release], scored: bool, verified: bool) -> None:
    """Download releases."""
    named = {Release(bug.project, version) for bug in scored_bugs() for version in (bug.bad, bug.good)} if scored else set()
    for release in sorted({*releases, *named}):
        click.echo(f"{release}: {release_tree(release)}")
        if verified and not verify(release):
            raise ReleaseError(f"{release}: the files are not what was downloaded (or nobody noted what that was)")


@main.command()
@click.option("--project", help="Bugs of one engine.")
@click.option("--class", "kind", help="Bugs of one kind.")
@click.option("--bug", "ids", multiple=True, help="This bug (repeatable).")
@click.option("--verbose", is_flag=True, help="One line a bug.")
@json_option
def score(project: str | None, kind: str | None, ids: tuple[str, ...], verbose: bool, json_file: Path | None) -> None:
    """Real bugs: reported in the last bad release, gone in the first good one."""
    bugs = [bug for bug in scored_bugs() if project in (None, bug.project) and kind in (None, bug.kind) and (not ids or bug.id in ids)]
    if not bugs:
        raise click.UsageError("no scored bug is meant by these options")
    checker = Checker()
    scores = scoring.score_bugs(bugs, checker)
    _print_scores(scores, checker, verbose)
    _save(json_file, {"bugs": scores, "noise": [scoring.noise(release, checker) for release in sorted(checker.reports)]})


def _print_scores(scores: Sequence[scoring.BugScore], checker: Checker, verbose: bool) -> None:
    if verbose:
        rows = [
            ("found" if one.found else "after" if one.still_reported else "MISSED", one.id, one.kind, f"{one.project} {one.bad}", one.reach,
             "" if one.by_kind is not False or not one.found else "other kind", " ".join(one.rules))
            for one in scores
        ]
        click.echo(table(("", "bug", "class", "bad release", "reach", "", "rules"), rows) + "\n")
    click.echo(table(("class", "found", "by a rule of that kind", "bugs"), scoring.by_kind_of_bug(scores)))
    found, of = scoring.recall(scores)
    click.echo(f"\nrecall {found}/{of} = {found / max(of, 1):.2f} of the bugs that source can show")
    counts = [len(report.findings) for report in checker.reports.values()]
    click.echo(f"{len(counts)} releases, {min(counts)} to {max(counts)} findings each (`python -m bench noise` for each)")


@main.command()
@releases_argument
@json_option
def noise(releases: list[Release], json_file: Path | None) -> None:
    """How many findings a release carries, by rule and confidence."""
    rows = _noise(releases or [Release.parse(name) for name in LATEST], Checker())
    _save(json_file, rows)


def _noise(releases: Sequence[Release], checker: Checker) -> list[scoring.Noise]:
    rows = [scoring.noise(release, checker) for release in releases]
    click.echo(table(
        ("release", "findings", "high", "medium", "errors", "seconds", "by rule"),
        [
            (row.release, row.findings, row.by_confidence.get("high", 0), row.by_confidence.get("medium", 0), row.errors, row.seconds,
             " ".join(f"{rule}:{number}" for rule, number in row.by_rule.items()))
            for row in rows
        ],
    ))
    return rows


@main.command()
@releases_argument
@click.option("--kind", "kinds", multiple=True, help="Mutants of this kind (repeatable).")
@click.option("--match", default="", help="Mutants whose id contains this.")
@click.option("--unread", is_flag=True, help="Also mutants that nobody has judged.")
@click.option("--list", "only_list", is_flag=True, help="Print the mutants and stop.")
@click.option("--jobs", default=2, show_default=True, help="Mutants tried at a time.")
@click.option("--verbose", is_flag=True, help="One line a mutant, and what was reported.")
@json_option
def mutants(
    releases: list[Release], kinds: tuple[str, ...], match: str, unread: bool, only_list: bool, jobs: int, verbose: bool,
    json_file: Path | None,
) -> None:
    """Releases with one padding statement or guard removed: is it noticed?"""
    checker = Checker()
    tables: list[MutantTable] = []
    for release in releases or [Release.parse(name) for name in LATEST]:
        wanted, unknown = select(release, kinds=kinds, unread=unread, match=match)
        if only_list:
            for mutant in wanted:
                click.echo(msgspec.json.encode(mutant).decode())
            continue
        scores = score_mutants(release, wanted, checker, jobs=jobs, progress=_print_mutant if verbose else None)
        tables.append(MutantTable(str(release), scores, unknown))
        _print_mutants(tables[-1])
    if not only_list:
        _save(json_file, tables)


def _print_mutant(score: MutantScore) -> None:
    click.echo(f"{'found ' if score.noticed else 'MISSED'} {score.verdict:9} {score.id} (line {score.line}) {' '.join(score.rules)}")
    for text in score.findings:
        click.echo(f"       {text}")


def _print_mutants(one: MutantTable) -> None:
    click.echo(f"\nmutants of {one.release}")
    click.echo(table(("verdict", "kind", "noticed", "located", "mutants"), table_rows(one.scores)))
    for verdict, wish in (("harmful", "should be noticed"), ("redundant", "should not")):
        of = [score for score in one.scores if score.verdict == verdict]
        if of:
            click.echo(f"{verdict}: {sum(score.noticed for score in of)}/{len(of)} noticed ({wish})")
    for name in one.unknown:
        click.echo(f"not in this release: {name}")


@main.command()
@releases_argument
@json_option
def triage(releases: list[Release], json_file: Path | None) -> None:
    """Findings that nobody has judged, and verdicts whose finding is gone; fails when there are any."""
    checker = Checker()
    results = [_triage(release, checker) for release in releases or [Release.parse(name) for name in LATEST]]
    _save(json_file, results)
    if any(result.untriaged or result.stale for result in results):
        sys.exit(1)


def _triage(release: Release, checker: Checker, *, brief: bool = False) -> Triage:
    result = compare(release, checker.findings(release), load_entries(release))
    if not brief:
        for finding in result.untriaged:
            click.echo(template(finding))
        for entry in result.stale:
            click.echo(f"# stale: {entry.fingerprint} {entry.rule} {entry.path} {entry.symbol} {entry.buffer}")
    counts = ", ".join(f"{number} {verdict}" for verdict, number in result.counts.items())
    click.echo(f"{release}: {counts}, {len(result.untriaged)} untriaged, {len(result.stale)} stale")
    return result


@main.command()
@releases_argument
@click.option("--select", "rules", multiple=True, help="Findings of this rule or family (repeatable).")
@click.option("--match", default="", help="Findings whose path, symbol, buffer or fingerprint contains this.")
@click.option("--untriaged", is_flag=True, help="Findings without a verdict.")
@click.option("--context", default=10, show_default=True, help="Lines before and after each step.")
def show(releases: list[Release], rules: tuple[str, ...], match: str, untriaged: bool, context: int) -> None:
    """Findings with the code around writer and reader."""
    checker = Checker()
    for release in releases or [Release.parse(LATEST[0])]:
        judged = {entry.fingerprint: entry for entry in load_entries(release)}
        for finding in checker.findings(release):
            about = f"{finding.path} {finding.symbol} {finding.buffer} {finding.fingerprint}"
            if (rules and not finding.rule.startswith(rules)) or match not in about or (untriaged and finding.fingerprint in judged):
                continue
            click.echo(render(finding, package_dir(release).parent, context))
            if finding.fingerprint in judged:
                click.echo(f"  verdict: {judged[finding.fingerprint].verdict}: {judged[finding.fingerprint].reason}\n")


@main.command()
@releases_argument
@click.option("--runs", default=3, show_default=True, help="Runs of each.")
@json_option
def timing(releases: list[Release], runs: int, json_file: Path | None) -> None:
    """Cold, warm and one-file runs: wall time and memory."""
    _save(json_file, {str(release): _timing(release, runs) for release in releases or [Release.parse(LATEST[0])]})


def _timing(release: Release, runs: int) -> list[Timing]:
    rows = measure(package_dir(release), runs)
    click.echo(f"\n{release}, {runs} runs each")
    cells = [(row.what, row.median, row.best, row.worst, row.peak_mib) for row in rows]
    click.echo(table(("what", "median s", "best s", "worst s", "peak MiB"), cells))
    return rows


@main.command("all")
@click.option("--jobs", default=2, show_default=True, help="Mutants tried at a time.")
@click.option("--docs", is_flag=True, help="Write the figures into docs/accuracy.md.")
@json_option
def everything(jobs: int, docs: bool, json_file: Path | None) -> None:
    """All of it: bugs, noise, triage, mutants, timing."""
    checker = Checker()
    latest = [Release.parse(name) for name in LATEST]
    scores = scoring.score_bugs(scored_bugs(), checker)
    _print_scores(scores, checker, verbose=True)
    click.echo()
    rows = _noise(sorted({*latest, *checker.reports}), checker)
    click.echo()
    triaged = [_triage(release, checker, brief=True) for release in latest]
    tables: list[MutantTable] = []
    for release in latest:
        wanted, unknown = select(release)
        tables.append(MutantTable(str(release), score_mutants(release, wanted, checker, jobs=jobs), unknown))
        _print_mutants(tables[-1])
    figures = Figures(scores, rows, triaged, tables, {str(latest[0]): _timing(latest[0], 3)})
    _save(json_file, figures)
    if docs:
        click.echo(f"\nwritten: {write_docs(figures)}")


def run() -> None:
    """The command, with its failures told in one line."""
    try:
        main()
    except (CheckError, ReleaseError, ValueError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    run()
