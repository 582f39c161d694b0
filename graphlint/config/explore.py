"""Walks every path of a function that asks questions: unknown facts, branches of a script.

The function runs once per combination of answers that matters. It asks through `Choices.pick`; the first option of each question is
the expected one, so the first run is the primary answer and the others say what would change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Answer(NamedTuple):
    """One answer that a run took: the question and the option in words."""

    question: str
    label: str


class Choices:
    """The answers of one run: a prefix is replayed, later questions take their first option."""

    def __init__(self, prefix: tuple[int, ...] = ()) -> None:
        self._prefix = prefix
        self.taken: list[int] = []
        self.widths: list[int] = []
        self.answers: list[Answer] = []
        self._memo: dict[str, int] = {}

    def pick(self, question: str, options: Sequence[tuple[T, str]]) -> T:
        """The value of the option chosen for this question; asking again gives the same."""
        if len(options) == 1:
            return options[0][0]
        if question in self._memo:
            return options[self._memo[question]][0]
        index = self._prefix[len(self.taken)] if len(self.taken) < len(self._prefix) else 0
        index = min(index, len(options) - 1)
        self._memo[question] = index
        self.taken.append(index)
        self.widths.append(len(options))
        self.answers.append(Answer(question, options[index][1]))
        return options[index][0]


def explore(run: Callable[[Choices], R], limit: int = 64) -> Iterator[tuple[R, list[Answer]]]:
    """Results of all runs with their answers, the expected one first. Stops after `limit` runs."""
    pending: list[tuple[int, ...]] = [()]
    count = 0
    while pending and count < limit:
        prefix = pending.pop(0)
        choices = Choices(prefix)
        result = run(choices)
        count += 1
        yield result, choices.answers
        for position in range(len(prefix), len(choices.taken)):
            for index in range(1, choices.widths[position]):
                pending.append((*choices.taken[:position], index))
