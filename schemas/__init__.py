"""Record types of the example jobs, one a file: plain Pydantic models that import nothing of ours."""
