"""Baselines: the findings that a project lives with today, so that only new ones are reported."""
