"""Accuracy and speed of graphlint, measured on releases of the engines: `python -m bench --help`."""
