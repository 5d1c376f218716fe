"""Finds in a document what its extractive fields may say, and where each candidate stands."""

from pipeline.spans.finder import Accepts, SpanFinder
from pipeline.spans.folding import folded

__all__ = ["Accepts", "SpanFinder", "folded"]
