"""Extents: counts as linear forms over (unit, state) atoms, the vocabularies that name them, and inference through code."""

from graphlint.extents.algebra import CAPACITY, LIVE, PADDED, UNSURE, Atom, Extent
from graphlint.extents.vocabulary import Vocabulary, load_vocabulary

__all__ = ["CAPACITY", "LIVE", "PADDED", "UNSURE", "Atom", "Extent", "Vocabulary", "load_vocabulary"]
