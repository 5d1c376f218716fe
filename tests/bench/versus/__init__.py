"""Whole jobs side by side: this system, and what a user would take instead.  `python -m tests.bench.versus`."""
