"""One run, from a job spec to a report: the only part that knows Ray (`cluster`, `worker`, `metrics`,
`last_words`).

job          the whole of one submission, and its exit code
preflight    what is checked before anything starts (`record`: the user's class; `fingerprint`: whose run this is)
plan         input objects as shards; the plan, written once (`rerun`: rows of another run instead)
submission   what a run writes about itself beside the plan

driver       the loop: hand out, listen, replace, stop (`dispatch`: who works on what; `fleet`: how many workers)
bisection    how a shard that kills its workers is divided
ledger       planned shards against parts present, and whether outcomes add up
progress     what is told meanwhile
stop         what signals do to a run
cluster      Ray actors as workers (`capacity`: how many fit; `messages`: what is said; `last_words`: what Ray says of
             a worker that died)

worker       the actor around one engine (`engines`: which; `loop_watch`: whether its loop is stuck)
attempt      one attempt at one shard (`intake`: its rows as they enter; `commit`: its part)
extract      one document: `policy` makes the requests and gives a `generation` (`guidance`, `repetition`: what its
             tokens show), `parse` and `salvage` make a record of it, `located` says where its values stand

verify       a finished run against its input
lint         what can be said of a record type before anything runs
in_process   one engine without Ray, for looking before a run: `preview`, `estimate` (what a run will take) and `trace`
             (one document, step by step), over documents that `sample` chooses
"""
