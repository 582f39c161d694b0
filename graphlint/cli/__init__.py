"""The command line. Modules of the commands are imported when they run, so that `--version` and `--help` stay quick."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import click

from graphlint import __version__

#: command -> (module, what it is for). A command whose module is not installed is not listed.
COMMANDS = {
    "check": ("graphlint.cli.check", "Find CUDA-graph padding bugs in an engine's source."),
    "rule": ("graphlint.cli.rule", "Explain a rule, or list all rules."),
    "facts": ("graphlint.cli.facts", "Show what graphlint knows of a file or of one line."),
    "config": ("graphlint.cli.config", "Say which CUDA-graph mode a deployment will really run."),
    "matrix": ("graphlint.cli.matrix", "Show which attention backends of a checkout support which CUDA-graph mode."),
    "validate": ("graphlint.cli.validate", "Prove findings by running the kernels."),
    "baseline": ("graphlint.cli.baseline", "Record today's findings, so that only new ones are reported."),
    "explain": ("graphlint.cli.explain", "Say what graphlint believes about one line, and why a rule fired there or did not."),
    "init": ("graphlint.cli.init", "Write a configuration for the project in the current folder."),
    "config-file": ("graphlint.cli.config_file", "Explain graphlint's own configuration, and where each setting comes from."),
    "test-rules": ("graphlint.cli.test_rules", "Run the examples of your own rules."),
    "lsp": ("graphlint.cli.lsp", "Serve an editor (language server protocol)."),
    "completion": ("graphlint.cli.completion", "Print the script that completes commands and options in your shell."),
}

EPILOG = """\b
Examples:
  graphlint init                               begin here, in the folder of your project
  graphlint check vllm/                        check a tree
  graphlint check --diff-base origin/main      only what this branch brought in
  graphlint check --select GL2 vllm/v1         only the rules on kernels
  graphlint check --output-format json=r.json --output-format text vllm/
  graphlint rule GL201                         why is this a bug?

Exit status: 0 nothing found, 1 findings, 2 usage error or something could not be checked."""


class LazyGroup(click.Group):
    """A group that imports the module of a command when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands whose modules exist, in the order of `COMMANDS`."""
        return [name for name, (module, _) in COMMANDS.items() if importlib.util.find_spec(module) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name: attribute `command` of its module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of `--help`, written from `COMMANDS` without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the likely meaning of a command that does not exist."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.list_commands(ctx):
            import difflib

            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" To check files: graphlint check {name}"
            raise click.UsageError(f"no such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="graphlint", message="%(prog)s %(version)s")
def main(**_: Any) -> None:
    """Find CUDA-graph padding bugs in LLM serving engines before they reach a GPU."""
