"""Mutants: a release with one padding or guard statement taken away, so that a tree known to be good carries one known fault.

`sites` finds them, `workspace` applies them to a linked copy of the release, `score` asks whether graphlint notices, and `lists/` holds
the verdicts of those that were read: harmful or redundant.
"""
