"""A demonstration that needs nothing but this checkout: an S3 server, small models, documents with known answers."""
