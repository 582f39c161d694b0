"""Words to settings, exactly as the argument parser of a vLLM release does it.

The steps are those of `FlexibleArgumentParser.parse_args` (0.10.1 to 0.33.0) and of argparse behind it: `--config FILE` is pulled in,
underscores become dashes, `-O` is rewritten by version, dotted options are collected per spelling and appended as JSON, the last
occurrence of an option wins whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphlint.config.json_values import BadJson, Symbol, dump_json, parse_json
from graphlint.config.tables import Flag, Tables
from graphlint.config.versions import V, Version
from graphlint.config.words import OPEN, Span, Word, shown


class Setting(NamedTuple):
    """The value that a field ends up with, the option as written, and where."""

    value: Any
    span: Span
    option: str


class Problem(NamedTuple):
    """What the parser would reject, drop or replace. `fatal`: the server does not start."""

    kind: str
    message: str
    span: Span
    fatal: bool = False
    option: str = ""


@dataclass
class Merged:
    """What a command line sets in one release."""

    model: Word | None = None
    values: dict[str, Setting] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    #: words that may stand for any further arguments
    open_ended: list[Word] = field(default_factory=list)

    def get(self, name: str) -> Any:
        """The value of a field, or None."""
        setting = self.values.get(name)
        return setting.value if setting is not None else None


LoadYaml = Callable[[Word], "list[tuple[str, Any, Span]] | None"]

_INTEGERS = {
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "data_parallel_size_local",
    "decode_context_parallel_size",
    "prefill_context_parallel_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "max_cudagraph_capture_size",
    "optimization_level",
    "spec_tokens",
    "max_seq_len_to_capture",
    "max_loras",
    "block_size",
}
_HUMAN = {"max_num_batched_tokens", "max_model_len", "block_size"}
#: what documents write for "further arguments"
_ELLIPSES = {"...", "[...]", "\u2026", "<...>", "[options]", "[OPTIONS]"}
_NEGATIVE = re.compile(r"^-\d+$|^-\d*\.\d+$")
_SUFFIX = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def merge(args: list[Word], version: Version, tables: Tables, entry: str = "serve", load_yaml: LoadYaml | None = None) -> Merged:
    """Settings of a command line under one release."""
    out = Merged()
    words = list(args)
    if entry == "serve":
        words = _model_option(words, version, out)
    words = _pull_config(words, version, tables, out, load_yaml, entry)
    words = _normalise(words, version, out)
    words = _dotted(words, out)
    _parse(words, version, tables, out, entry)
    return out


def _model_option(words: list[Word], version: Version, out: Merged) -> list[Word]:
    for index, word in enumerate(words):
        if word.text == "--model" or word.text.startswith("--model="):
            if version < V("0.11.1"):
                if word.text == "--model":
                    out.problems.append(
                        Problem(
                            "model-option",
                            "`vllm serve` of this release rejects --model: give the model as the first argument",
                            word.span,
                            True,
                            "--model",
                        )
                    )
                break
            if word.text == "--model":
                return [*words[index + 1 : index + 2], *words[:index], *words[index + 2 :]]
            return [Word(word.text[8:], word.span), *words[:index], *words[index + 1 :]]
    return words


def _pull_config(words: list[Word], version: Version, tables: Tables, out: Merged, load_yaml: LoadYaml | None, entry: str) -> list[Word]:
    for word in words:
        if word.text.startswith("--config="):
            out.problems.append(
                Problem(
                    "config-equals",
                    f"`{shown(word.text)}` is accepted and the file is never read: only the form with two words is expanded",
                    word.span,
                    False,
                    "--config",
                )
            )
    places = [i for i, w in enumerate(words) if w.text == "--config"]
    if not places:
        return words
    index = places[0]
    if len(places) > 1:
        out.problems.append(
            Problem("config-twice", "more than one --config: the server stops with an assertion", words[places[1]].span, True)
        )
    if index == len(words) - 1:
        out.problems.append(Problem("config-missing", "--config without a file", words[index].span, True))
        return words[:index]
    target = words[index + 1]
    rest = [*words[:index], *words[index + 2 :]]
    if target.known and target.text.rsplit(".", 1)[-1] not in ("yaml", "yml"):
        out.problems.append(Problem("config-type", f"--config takes a .yaml or .yml file, not {target.text}", target.span, True))
        return rest
    entries = load_yaml(target) if load_yaml is not None else None
    if entries is None:
        out.open_ended.append(Word(f"--config {target.text}", target.span))
        return rest
    from_file = config_words(entries, version, tables)
    head = 1 if entry == "serve" and rest and not rest[0].text.startswith("-") else 0
    model = [w for i, w in enumerate(from_file) if i and from_file[i - 1].text == "--model"]
    if entry == "serve" and model:
        from_file = [w for i, w in enumerate(from_file) if w.text != "--model" and not (i and from_file[i - 1].text == "--model")]
        if head == 0:
            rest, head = [model[0], *rest], 1
    return [*rest[:head], *from_file, *rest[head:]]


def config_words(entries: list[tuple[str, Any, Span]], version: Version, tables: Tables) -> list[Word]:
    """The words that a vLLM YAML file becomes (`load_config_file`)."""
    out: list[Word] = []
    for key, value, span in entries:
        option = "--" + key
        if isinstance(value, bool):
            negative = f"--no-{key}"
            if value:
                out.append(Word(option, span))
            elif version >= V("0.28.0") and negative.replace("_", "-") in tables.flags:
                out.append(Word(negative, span))
        elif isinstance(value, list):
            if value:
                out.append(Word(option, span))
                out.extend(Word(_plain(item), span) for item in value)
        elif isinstance(value, dict) and version >= V("0.16.0"):
            out += [Word(option, span), Word(json.dumps(value), span)]
        else:
            out += [Word(option, span), Word(_plain(value), span)]
    return out


def _plain(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _normalise(words: list[Word], version: Version, out: Merged) -> list[Word]:
    done: list[Word] = []
    for index, word in enumerate(words):
        text, span = word.text, word.span
        if text.startswith("--help="):
            done.append(Word("--help", span))
        elif text.startswith("--"):
            key, equals, value = text.partition("=")
            head, dot, tail = key.partition(".")
            done.append(Word(head.replace("_", "-") + dot + tail + equals + value, span, word.splat))
        elif text.startswith("-O") and text != "-O" and not (version < V("0.13.0") and text[2] == "."):
            value = text[3:] if text[2] == "=" else text[2:]
            if version >= V("0.12.0"):
                done += [Word("--optimization-level", span), Word(value, span)]
            else:
                done.append(Word(f"-O.{_level_key(version)}={value}", span))
        elif text == "-O" and index + 1 < len(words) and words[index + 1].text in {"0", "1", "2", "3"}:
            done.append(Word("--optimization-level" if version >= V("0.12.0") else f"-O.{_level_key(version)}", span))
        elif text.startswith("-O.") and version >= V("0.12.0"):
            out.problems.append(
                Problem("dotted-O", "the -O.* form is deprecated in 0.12.0 and an error from 0.13.0: use -cc.*", span, False, text)
            )
            done.append(Word("-cc" + text[2:], span))
        else:
            done.append(word)
    return done


def _level_key(version: Version) -> str:
    return "mode" if version >= V("0.11.1") else "level"


def _dotted(words: list[Word], out: Merged) -> list[Word]:
    rest: list[Word] = []
    collected: dict[str, tuple[dict[str, Any], Span]] = {}
    skip = False
    for index, word in enumerate(words):
        if skip:
            skip = False
            continue
        key, equals, value = word.text.partition("=")
        if not (key.startswith("-") and "." in key) or _NEGATIVE.match(word.text) or OPEN in key or " " in key:
            rest.append(word)
            continue
        span = word.span
        if not equals:
            if index + 1 >= len(words):
                out.problems.append(Problem("missing-value", f"{key} without a value", span, True, key))
                continue
            value = words[index + 1].text
            span = Span(span.path, span.line, span.column, words[index + 1].span.end_line, words[index + 1].span.end_column)
            skip = True
        if key.endswith("+"):
            key = key[:-1]
            value = json.dumps(value.split(","))
        option, *path = key.split(".")
        nested: Any = parse_json(value, bare=True)
        for part in reversed(path):
            nested = {part: nested}
        held = collected.setdefault(option, ({}, span))
        for duplicate in _update(held[0], nested):
            out.problems.append(Problem("repeated", f"{option}.{duplicate} is given twice: the last one counts", span, False, option))
    for option, (value_dict, span) in collected.items():
        rest += [Word(option, span), Word(dump_json(value_dict), span)]
    return rest


def _update(into: dict[str, Any], new: dict[str, Any]) -> list[str]:
    duplicates: list[str] = []
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            duplicates += [f"{key}.{d}" for d in _update(into[key], value)]
        elif isinstance(value, list) and isinstance(into.get(key), list):
            into[key] += value
        else:
            if key in into:
                duplicates.append(key)
            into[key] = value
    return duplicates


def find_flag(option: str, tables: Tables) -> tuple[str, Flag] | None:
    """The option that argparse takes this word for: exact, else the only one that it abbreviates."""
    if option in tables.flags:
        return option, tables.flags[option]
    if option.startswith("--") and len(option) > 2:
        matches = {f: flag for f, flag in tables.flags.items() if f.startswith(option)}
        if len({f.dest for f in matches.values()}) == 1 and len(matches) == 1:
            return next(iter(matches.items()))
    return None


def _is_option(word: Word) -> bool:
    return word.text.startswith("-") and len(word.text) > 1 and not _NEGATIVE.match(word.text) and " " not in word.text.split("=")[0]


def _parse(words: list[Word], version: Version, tables: Tables, out: Merged, entry: str) -> None:
    index = 0
    positionals = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.splat or word.text in _ELLIPSES:
            out.open_ended.append(word)
            continue
        if not _is_option(word):
            prose = index - 1
            while prose < len(words) and words[prose].text.isalpha():
                prose += 1
            if prose - index >= 2:  # three bare words in a row are a sentence, not arguments
                out.open_ended += words[index - 1 : prose]
                index = prose
                continue
            positionals += 1
            if positionals == 1 and entry == "serve":
                out.model = word
            elif word.known and word.text:
                before = f" after {shown(words[index - 2].text)}" if index > 1 else ""
                out.problems.append(Problem("extra-argument", f"unrecognized argument {word.text!r}{before}", word.span, True, word.text))
            continue
        option, equals, attached = word.text.partition("=")
        if OPEN in option:
            out.open_ended.append(word)
            continue
        found = find_flag(option, tables)
        if found is None:
            out.problems.append(
                Problem("unknown-option", f"{option} is not an option of `vllm serve` in {version}", word.span, True, option)
            )
            while index < len(words) and not _is_option(words[index]) and not equals:
                index += 1
            continue
        name, flag = found
        index = _take(word, name, flag, equals, attached, words, index, version, out)


def _take(
    word: Word, name: str, flag: Flag, equals: str, attached: str, words: list[Word], index: int, version: Version, out: Merged
) -> int:
    if flag.kind in ("flag", "off", "bool"):
        if equals:
            out.problems.append(
                Problem("explicit-argument", f"{name} takes no value: `{shown(word.text)}` is rejected", word.span, True, name)
            )
        _set(out, flag.dest, Setting(flag.kind != "off" and not name.startswith("--no-"), word.span, name))
        return index
    values: list[Word] = []
    if equals:
        values = [Word(attached, word.span)]
    elif flag.kind == "list":
        while index < len(words) and not _is_option(words[index]):
            values.append(words[index])
            index += 1
    elif index < len(words) and (not _is_option(words[index]) or words[index].splat):
        values = [words[index]]
        index += 1
    if not values:
        if flag.kind == "optional":
            _set(out, flag.dest, Setting(True, word.span, name))
        elif flag.kind != "list":
            out.problems.append(Problem("missing-value", f"{name} without a value", word.span, True, name))
        else:
            out.problems.append(Problem("missing-value", f"{name} needs at least one value", word.span, True, name))
        return index
    end = values[-1].span
    span = Span(word.span.path, word.span.line, word.span.column, end.end_line, end.end_column)
    if flag.kind == "list":
        _set(out, flag.dest, Setting([_scalar(v.text, flag.dest) for v in values], span, name))
    else:
        _value(out, name, flag, values[0], span, version)
    return index


def _value(out: Merged, name: str, flag: Flag, value: Word, span: Span, version: Version) -> None:
    if flag.kind == "json":
        if re.fullmatch(r"\d+", value.text) and flag.dest == "compilation_config":
            out.problems.append(
                Problem(
                    "bare-level",
                    f"{name} {value.text}: a bare number is rejected, write '{{\"{_level_key(version)}\": {value.text}}}'",
                    span,
                    True,
                    name,
                )
            )
            return
        if value.text in ("None", "null", ""):
            return
        try:
            parsed = parse_json(value.text)
        except BadJson as error:
            out.problems.append(Problem("bad-json", f"{name}: not valid JSON ({error})", value.span, True, name))
            return
        _set(out, flag.dest, Setting(parsed, span, name))
        return
    if value.text == "None":
        return
    parsed = _scalar(value.text, flag.dest)
    if flag.dest in _INTEGERS and isinstance(parsed, str) and not (flag.dest == "max_model_len" and parsed == "auto"):
        out.problems.append(Problem("bad-value", f"{name}: invalid int value {parsed!r}", span, True, name))
        return
    if flag.choices and isinstance(parsed, str) and parsed not in flag.choices and flag.dest == "all2all_backend":
        out.problems.append(
            Problem("bad-value", f"{name}: invalid choice {parsed!r} (choose from {', '.join(flag.choices)})", span, True, name)
        )
        return
    _set(out, flag.dest, Setting(parsed, span, name))


def _scalar(text: str, dest: str) -> Any:
    if OPEN in text:
        return Symbol(text)
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if dest in _HUMAN:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text)
        if match:
            return int(float(match.group(1)) * _SUFFIX[match.group(2)])
    return text


def _set(out: Merged, dest: str, setting: Setting) -> None:
    before = out.values.get(dest)
    if before is not None and before.value != setting.value:
        if isinstance(before.value, dict):
            kept = setting.value if isinstance(setting.value, dict) else {}
            lost = [k for k in before.value if k not in kept or kept[k] != before.value[k]]
            if lost:
                out.problems.append(
                    Problem(
                        "replaced",
                        f"{setting.option} here replaces the whole {before.option} of line {before.span.line}: "
                        f"{', '.join(lost)} of the first {'is' if len(lost) == 1 else 'are'} lost",
                        setting.span,
                        False,
                        setting.option,
                    )
                )
        else:
            out.problems.append(
                Problem(
                    "repeated",
                    f"{setting.option} is given twice, the last one counts ({before.value} on line {before.span.line} is dropped)",
                    setting.span,
                    False,
                    setting.option,
                )
            )
    out.values[dest] = setting
