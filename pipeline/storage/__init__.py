"""Everything that is read or written: where it lies, what it looks like, and how a shard's result is committed.

store       the protocol of an object store, and which one a URI belongs to
s3, local   the two that ship; `s3` is the only module that talks to s3fs and botocore
layout      the name of every object of a run
documents   input objects and the documents in them (`parquet_input`, `text_input`: by format)
arrow       a record model's columns, and outcomes as a table (`columns`: types; `values`: what a column can hold)
parts       the Parquet object that holds a shard's outcomes, and its footer
reader      a run's records as a dataset
"""
