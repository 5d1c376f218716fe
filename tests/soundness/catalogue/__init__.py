"""The catalogue, by kind of type."""
