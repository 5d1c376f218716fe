"""Owns the import of the user's record class; it never reads code from anywhere but `sys.path` and the job's folder."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
import traceback
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from pipeline.core.errors import RecordImportError

__all__ = ["USER_CODE_ERRORS", "import_first", "import_paths", "load_record"]

USER_CODE_ERRORS: tuple[type[Exception], ...] = (Exception,)
"""What code of the user's (a module's body, a validator, a serialiser) may raise: anything, their own classes too."""

_SAID_CHARACTERS = 400
"""Of an error of the user's code; Pydantic's of a wrong pattern takes 300."""


def import_paths() -> tuple[str, ...]:
    """The folders that this process imports from, first to last."""
    return tuple(str(Path(path).resolve()) for path in sys.path if Path(path).is_dir())


def import_first(paths: Sequence[str]) -> None:
    """Puts folders first on `sys.path`, in their order, before any other that has a package of the same name."""
    sys.path[:] = dict.fromkeys((*paths, *sys.path))


def load_record(name: str, base: Path) -> type[BaseModel]:
    """The record class that `package.module:ClassName` names.

    Args:
        name: as in the job spec, which has checked its form.
        base: the job's folder; a local folder, looked into first.

    Raises:
        RecordImportError: no such module or class, the module's body raises, or the class is no Pydantic model.
    """
    module_name, _, class_name = name.partition(":")
    if base.is_dir():
        import_first([str(base.resolve())])
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        raise RecordImportError(f"record {name!r}: there is no module {missing!r} in {base} or on sys.path") from error
    except USER_CODE_ERRORS as error:
        said = textwrap.shorten(f"{type(error).__name__}: {error}", _SAID_CHARACTERS, placeholder=" ...")
        raise RecordImportError(f"record {name!r}: importing it raised {said}{_line(error, base)}") from error
    found = getattr(module, class_name, None)
    if found is None:
        offered = sorted(
            key for key, value in vars(module).items() if _is_model(value) and value.__module__ == module.__name__
        )
        offer = f"; it has {', '.join(offered)}" if offered else ""
        raise RecordImportError(f"record {name!r}: {module.__file__} has no class {class_name!r}{offer}")
    if not _is_model(found):
        raise RecordImportError(f"record {name!r}: {class_name} is no pydantic.BaseModel")
    model: type[BaseModel] = found
    return model


def _line(error: Exception, base: Path) -> str:
    """The last line of the job's own code on the way to an error, which may be raised deep in a library."""
    folder = str(base.resolve())
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(folder + os.sep)]
    return f"; {own[-1].filename}, line {own[-1].lineno}" if own else ""


def _is_model(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel) and value is not BaseModel
