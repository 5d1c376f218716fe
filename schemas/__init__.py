"""Record types of the example jobs, one a file: plain Pydantic models, which of ours import the mark `Span` at most."""
