"""`graphlint config`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from graphlint.config.check import Options, Result
    from graphlint.config.deployment import Deployment
    from graphlint.finding import Finding

FORMATS = ("text", "json", "concise", "sarif", "github", "gitlab", "junit", "markdown", "html")
COMMAND_LINE = "<command line>"
EPILOG = """\b
Examples:
  graphlint config -- vllm serve Qwen/Qwen3-8B --attention-backend FLASHINFER --speculative-config '{"method":"eagle3",...}'
  graphlint config --vllm-version 0.25.1 --gpu H100 deploy/
  graphlint config --model-config config.json docker-compose.yaml
  graphlint config --output-format json k8s/ | jq '.deployments[].resolutions[].effective_mode'

\b
Facts outside the command line:
  --gpu H100, --gpu sm_90      the device; without it the answer is given for several where they differ
  --model-config FILE          the model's config.json
  --assume moe, backend=X      one fact; see --help

\b
Exit status: 0 nothing at or above the failing severity, 1 findings, 2 usage error or something could not be read."""


class ConfigCommand(click.Command):
    """Keeps what follows `--` apart: it is a command line, not options of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first `--`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["graphlint.command"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def _version(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from graphlint.config.versions import parse_version

    if value is None:
        return None
    try:
        return parse_version(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no version such as 0.25.1", ctx, param) from None


def _split(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


@click.command("config", cls=ConfigCommand, epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATHS]... [-- COMMAND]")
@click.option(
    "--vllm-version", "--version-of", callback=_version, metavar="X.Y.Z", help="Release to answer for, instead of what the input states."
)
@click.option(
    "--vllm-checkout",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read the tables from this checkout.",
)
@click.option("--gpu", metavar="NAME", help="Device, e.g. H100, L40S, B200, RTX4090, MI300X, or sm_90.")
@click.option(
    "--model-config", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help="The model's config.json."
)
@click.option(
    "--assume",
    multiple=True,
    metavar="FACT",
    help="A fact: moe, hybrid, mla, sparse, pooling, encoder-decoder, multimodal (or moe=false ...), arch=NAME, backend=NAME, "
    "support=LEVEL, runner=v1|v2, platform=cuda|rocm|xpu|cpu. May be repeated.",
)
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="An environment variable of the server. May be repeated.")
@click.option("--select", multiple=True, callback=_split, metavar="RULES", help="Only these rules: ids, prefixes, names.")
@click.option("--ignore", multiple=True, callback=_split, metavar="RULES", help="All rules but these.")
@click.option("--severity", type=click.Choice(["info", "warning", "error"]), help="Report nothing milder, and fail at this severity.")
@click.option(
    "--min-confidence", type=click.Choice(["low", "medium", "high"]), default="medium", show_default=True, help="Report nothing less sure."
)
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="How to report.")
@click.option("--verbose", "-v", is_flag=True, help="Show every deployment, those without findings too.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    vllm_version: Any,
    vllm_checkout: Path | None,
    gpu: str | None,
    model_config: Path | None,
    assume: tuple[str, ...],
    env: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: str | None,
    min_confidence: str,
    output_format: str,
    verbose: bool,
    exit_zero: bool,
) -> None:
    """Say which CUDA-graph mode each deployment below PATHS, or the command after --, will really run, and why.

    Reads shell scripts, Dockerfiles, compose files, Kubernetes manifests, Helm values, vLLM YAML configuration, recipes, workflows,
    Markdown fences and Python. Nothing is executed.
    """
    from graphlint.config.check import check_deployments, check_files

    options = _options(ctx, vllm_version, vllm_checkout, gpu, model_config, assume, select, ignore)
    words: list[str] | None = ctx.meta.get("graphlint.command")
    missing: list[str] = []
    if words is not None:
        if paths:
            raise click.UsageError("give paths or a command after --, not both", ctx)
        deployments, text = _command_line(ctx, words)
        _add_env(deployments, env)
        result = check_deployments(deployments, options, (COMMAND_LINE, text))
    else:
        from graphlint.config.discover import find_files

        files, missing = find_files(paths or (".",))
        with _no_collection():
            result = check_files(files, options)
        if env:
            click.echo("note: --env applies to a command after --", err=True)
    findings = _shown(result, severity, min_confidence)
    _write(result, findings, output_format, verbose or words is not None)
    for path in missing:
        click.echo(f"error: {path}: no such file or folder", err=True)
    if missing or (words is None and paths and not result.files):
        ctx.exit(2)
    if exit_zero:
        ctx.exit(0)
    if result.errors:
        ctx.exit(2)
    limit = {"info": 0, "warning": 1, "error": 2}[severity or "warning"]
    ctx.exit(1 if any({"info": 0, "warning": 1, "error": 2}[f.severity] >= limit for f in findings) else 0)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Many small objects are made and none is garbage: searching for it would only cost time."""
    import gc

    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _options(
    ctx: click.Context,
    version: Any,
    checkout: Path | None,
    gpu: str | None,
    model_config: Path | None,
    assume: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
) -> Options:
    from graphlint.config.check import Options
    from graphlint.config.gpu import parse_gpu
    from graphlint.config.pack import load_rules, selected
    from graphlint.config.situation import BadAssumption, parse_assumptions

    try:
        given = parse_assumptions(assume)
        if gpu is not None:
            given.gpu = parse_gpu(gpu)
    except (BadAssumption, ValueError) as error:
        raise click.UsageError(str(error), ctx) from None
    if model_config is not None:
        import msgspec

        try:
            given.model_config = msgspec.json.decode(model_config.read_bytes(), type=dict)
        except (OSError, msgspec.DecodeError) as error:
            raise click.UsageError(f"--model-config {model_config}: not readable as a JSON object ({error})", ctx) from None
    options = Options(given=given, version=version)
    if checkout is not None:
        from graphlint.config.extract.tables import NotACheckout, checkout_version, extract_tables, package_root
        from graphlint.config.tables import bundled_versions
        from graphlint.config.versions import parse_version

        try:
            root = package_root(checkout)
            stated = checkout_version(root)
            options.version = version or (parse_version(stated) if stated else bundled_versions()[-1])
            options.tables = extract_tables(root, str(options.version))
        except (NotACheckout, ValueError) as error:
            raise click.UsageError(str(error), ctx) from None
    rules, errors = load_rules()
    for broken in errors:
        click.echo(f"error: {broken.path}: {broken.message}", err=True)
    options.rules = selected(rules, select, ignore)
    return options


def _command_line(ctx: click.Context, words: list[str]) -> tuple[list[Deployment], str]:
    import re
    import shlex

    from graphlint.config.readers.launch import from_command, script_deployments
    from graphlint.config.readers.shell import Command
    from graphlint.config.words import Span, Word, unknown

    if len(words) == 1 and " " in words[0]:
        found, notes = script_deployments(words[0], COMMAND_LINE)
        for note in notes:
            click.echo(f"note: {note.message}", err=True)
        text = words[0]
    else:
        env: dict[str, Word] = {}
        parsed: list[Word] = []
        column = 1
        text = shlex.join(words)
        for raw in words:
            quoted = shlex.quote(raw)
            value = re.sub(r"\$\{?\w+\}?", lambda m: unknown(m.group(0)), raw)
            parsed.append(Word(value, Span(COMMAND_LINE, 1, column, 1, column + len(quoted))))
            column += len(quoted) + 1
        while parsed and re.match(r"^[A-Za-z_]\w*=", parsed[0].text):
            name, _, value = parsed.pop(0).text.partition("=")
            env[name] = Word(value, Span(COMMAND_LINE, 1))
        found = from_command(Command(parsed, env), COMMAND_LINE) if parsed else []
    if not found:
        raise click.UsageError("no vLLM or SGLang server command after --; expected something like `vllm serve MODEL ...`", ctx)
    return found, text


def _add_env(deployments: list[Deployment], env: tuple[str, ...]) -> None:
    from graphlint.config.words import Span, Word

    for item in env:
        name, _, value = item.partition("=")
        for deployment in deployments:
            deployment.env.setdefault(name, Word(value, Span(deployment.span.path, deployment.span.line)))


def _shown(result: Result, severity: str | None, min_confidence: str) -> list[Finding]:
    from graphlint.config.discover import Silencers
    from graphlint.finding import CONFIDENCES, SEVERITIES
    from graphlint.fingerprints import set_fingerprints
    from graphlint.source.files import SourceFile, SourceText

    silencers = {path: Silencers(text) for path, text in result.texts.items() if "graphlint:" in text}
    kept = [f for f in result.findings if f.path not in silencers or not silencers[f.path].silences(f)]
    kept = [f for f in kept if CONFIDENCES.index(f.confidence) >= CONFIDENCES.index(min_confidence)]
    if severity is not None:
        kept = [f for f in kept if SEVERITIES.index(f.severity) >= SEVERITIES.index(severity)]
    set_fingerprints(kept, SourceText([SourceFile(path, text.encode()) for path, text in result.texts.items()]))
    return kept


def _write(result: Result, findings: list[Finding], output_format: str, verbose: bool) -> None:
    if output_format == "text":
        from graphlint.config.render import render_text

        click.echo(render_text(result, findings, verbose), nl=False)
        return
    if output_format == "json":
        click.echo(_json(result, findings), nl=False)
        return
    from graphlint import report as formats
    from graphlint.finding import Report, Stats
    from graphlint.runner import Outcome
    from graphlint.source.discovery import Discovery
    from graphlint.source.files import SourceFile, SourceText

    if output_format not in formats.available():
        raise click.UsageError(f"format {output_format!r} is not installed; choose from text, json, {', '.join(formats.available())}")
    sources = SourceText([SourceFile(path, text.encode()) for path, text in result.texts.items()])
    outcome = Outcome(Report(findings, result.errors, Stats(files=result.files)), Discovery([], [], []), sources)
    click.echo(formats.load(output_format).render(outcome, color=False), nl=False)


def _json(result: Result, findings: list[Finding]) -> str:
    import msgspec

    from graphlint import __version__
    from graphlint.config.render import deployments_json
    from graphlint.report.json import SCHEMA, finding_dict

    document = {
        "schema": SCHEMA,
        "tool": {"name": "graphlint", "version": __version__},
        "deployments": deployments_json(result),
        "findings": [finding_dict(f) for f in findings],
        "notes": [{"path": n.path, "line": n.line, "message": n.message} for n in result.notes],
        "errors": [{"path": e.path, "kind": e.kind, "message": e.message} for e in result.errors],
        "stats": {"files": result.files, "parsed": len(result.texts), "cached": 0, "seconds": round(result.seconds, 3)},
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
