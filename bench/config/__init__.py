"""Measures of the configuration checks: labelled deployments, released methods run against the resolution, recipes."""
