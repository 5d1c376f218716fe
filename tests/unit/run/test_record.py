"""The user's record class is imported from the job's folder, whatever else is importable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipeline.core.errors import RecordImportError
from pipeline.run.record import import_first, import_paths, load_record

TICKET = "from pydantic import BaseModel\n\n\nclass Ticket(BaseModel):\n    number: int\n"


@pytest.fixture(autouse=True)
def _no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "some_schemas"]:
        monkeypatch.delitem(sys.modules, name)


def _folder(root: Path, name: str, **modules: str) -> Path:
    package = root / name / "some_schemas"
    package.mkdir(parents=True)
    for module, text in {"__init__": "", **modules}.items():
        (package / f"{module}.py").write_text(text)
    return root / name


def test_the_jobs_folder_comes_before_a_package_of_the_same_name_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, other = _folder(tmp_path, "job", ticket=TICKET), _folder(tmp_path, "other")
    # As in a worker: Ray has put the driver's folder on the path already, behind another.
    monkeypatch.setattr(sys, "path", [str(other), str(job), *sys.path])
    assert load_record("some_schemas.ticket:Ticket", job)(number=3).model_dump() == {"number": 3}
    assert sys.path[0] == str(job)
    assert sys.path.count(str(job)) == 1


def test_a_missing_module_is_named_with_the_folder_that_was_looked_in(tmp_path: Path) -> None:
    job = _folder(tmp_path, "job", ticket=TICKET)
    with pytest.raises(RecordImportError, match=r"no module 'some_schemas\.tickets'") as caught:
        load_record("some_schemas.tickets:Ticket", job)
    assert str(job) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "from typing import Annotated\n"
            + TICKET.replace("int", "Annotated[str, Field(pattern='(?=a)')]").replace("import", "import Field,"),
            "look-ahead and look-behind, is not supported; {file}, line 5 ",
        ),
        ("import os\n\nTABLE = os.environ['NO_SUCH_VARIABLE']\n", "KeyError: 'NO_SUCH_VARIABLE'; {file}, line 3 "),
        ("class Ticket(:\n", "SyntaxError: invalid syntax (ticket.py, line 1) "),
    ],
)
def test_what_the_module_raised_is_one_line_with_the_place_in_it(text: str, said: str, tmp_path: Path) -> None:
    job = _folder(tmp_path, "job", ticket=text)
    with pytest.raises(RecordImportError) as caught:
        load_record("some_schemas.ticket:Ticket", job)
    assert said.format(file=job / "some_schemas" / "ticket.py") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_worker_imports_from_where_its_driver_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, other = _folder(tmp_path, "job"), _folder(tmp_path, "other")
    monkeypatch.chdir(job)
    monkeypatch.setattr(sys, "path", ["", str(other), str(tmp_path / "gone"), "__editable__.hook"])
    paths = import_paths()
    assert paths == (str(job), str(other))
    monkeypatch.setattr(sys, "path", [str(other), "/worker", str(job)])
    import_first(paths)
    assert sys.path == [str(job), str(other), "/worker"]
