"""The driver's own code over many documents and engines, on a made-up clock."""
