"""Tests of the demonstration: documents, models, server, and the example jobs."""
