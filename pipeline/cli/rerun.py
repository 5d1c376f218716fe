"""`recordmill rerun`: documents of a run again, with more room or another model, as a new run that names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pipeline.cli.output import notes
from pipeline.cli.results import Prefix
from pipeline.cli.run import Address, carry_out
from pipeline.cli.specs import Endpoint, Region, Set, s3_settings, spec_of
from pipeline.core.errors import SpecError
from pipeline.core.outcome import Cause, Status
from pipeline.core.spec import JobSpec
from pipeline.run.fingerprint import hidden_settings

__all__ = ["register"]

Statuses = Annotated[
    str,
    typer.Option("--status", metavar="STATUS,...", help=f"Documents with these: {', '.join(Status)}."),
]
Causes = Annotated[str | None, typer.Option("--cause", metavar="CAUSE,...", help="And with these causes only.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help="The new budget of a record.")]
Output = Annotated[str, typer.Option("--output", metavar="NEW", help="Prefix of the new run.")]


def register(app: typer.Typer) -> None:
    app.command("rerun")(rerun_command)


def rerun_command(
    prefix: Prefix,
    output: Output,
    status: Statuses = "truncated,closed",
    cause: Causes = None,
    max_tokens: MaxTokens = None,
    overrides: Set = None,
    address: Address = None,
    endpoint_url: Endpoint = None,
    region: Region = None,
) -> int:
    """Run some documents of a finished run again, as a new run.

    The old run is left as it is. The new one has its job spec, with what you change; its spec and its report name the
    old one. Run again with the same words, it goes on where it was.

    Example: `recordmill rerun s3://bucket/runs/receipts/ --status truncated,closed --max-tokens 2048
    --output s3://bucket/runs/receipts-long/`
    """
    from pipeline.run.rerun import count_chosen, rerun_spec
    from pipeline.run.verify import stored_spec
    from pipeline.storage.layout import RunLayout
    from pipeline.storage.store import open_store

    settings = s3_settings(endpoint_url, region)
    parent = stored_spec(open_store(prefix, settings), RunLayout(prefix))
    raw = rerun_spec(
        parent,
        of=prefix,
        output=output,
        status=_listed(status, list(Status), "--status"),
        cause=_listed(cause or "", list(Cause), "--cause"),
        max_tokens=max_tokens,
    )
    raw["s3"] = parent.s3.with_given(settings).model_dump()
    job = spec_of(raw, overrides, source=f"the rerun of {prefix}")
    _check_secrets(job)
    if job.rerun is None:
        raise SpecError("--set rerun: the link to the old run cannot be taken away")
    chosen = count_chosen(job, job.rerun)
    causes = ", ".join(f"{name} {number}" for name, number in sorted(chosen.by_cause.items()))
    notes().print(f"{chosen.documents} documents of {prefix}" + (f" ({causes})" if causes else ""), markup=False)
    if chosen.left_out:
        notes().print(f"{chosen.left_out} are left out: they have no id of their own", markup=False)
    if not chosen.documents:
        notes().print("nothing to run again")
        return 0
    return carry_out(job, address)


def _listed(text: str, known: Sequence[str], option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise SpecError(f"{option} {', '.join(unknown)}: there is no such thing; there are {', '.join(known)}")
    return names


def _check_secrets(job: JobSpec) -> None:
    """A stored spec holds no secrets; what they stood for has to be said again."""
    if hidden := hidden_settings(job.model.engine, "model.engine"):
        raise SpecError(f"the stored spec holds no secrets: give --set {hidden[0]}=...")
