"""Reads a vLLM checkout's own tables out of its source, by AST; nothing of the checkout is imported or run."""

from __future__ import annotations

from graphlint.config.extract.tables import extract_tables

__all__ = ["extract_tables"]
