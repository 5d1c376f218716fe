"""What became of a run's documents, for programs and for people; derived, never a source.

model       the report as a value: report.json, and its JSON schema
counts      footers and plan to the report (`timeline`: the rate over time)
use         what submissions write down of their engines' time (`times`: the phases of a document)
scores      records against known answers (`compare`: how two values are compared)
write       footers, spec, submissions in; report.json and report.html out
html        the page (`charts`: where its marks go; `page.html.j2`, `parts.html.j2`, `page.css`)
terminal    the same in a terminal, and records beside their text
verdict, text   words and numbers that page and terminal share
"""
