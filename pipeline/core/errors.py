"""Every error this system raises on purpose, and the exit code each one ends a run with.

    RecordmillError                     exit 1
    ├── SpecError                       exit 2  the job spec cannot be used as written
    │   ├── RecordImportError           exit 2  `record:` names no Pydantic model that can be imported
    │   ├── SchemaRefusedError          exit 2  the model holds a construct that no guide can be made for
    │   ├── BudgetError                 exit 2  max_tokens is below the least record
    │   └── FingerprintError            exit 2  the output prefix belongs to another run
    ├── InputError                      exit 2  the input holds no documents that can be read as asked
    │   └── UnreadableError             exit 1  one object, row group or page cannot be read
    ├── StorageError                    exit 3  the object store did not do what was asked (retryable)
    │   ├── StorageAccessError          exit 2  credentials or permissions refuse it
    │   └── StorageNotFoundError        exit 2  bucket or object does not exist
    ├── EngineError                     exit 3  an engine could not be started or used
    │   ├── EngineStartError            exit 2  the engine cannot start as configured
    │   ├── EngineDeadError             exit 3  the engine died; its worker must be replaced (retryable)
    │   └── RequestRefusedError         exit 1  the engine refused one request
    ├── ClusterError                    exit 3  Ray gave out, or lacks what the run needs
    ├── LimitReachedError               exit 1  a limit of the job spec stopped the run
    ├── IncompleteError                 exit 1  not every planned document has an outcome
    │   └── LeftOutError                exit 1  input objects could not be read when the run was planned
    ├── VerificationError               exit 1  what is stored contradicts the plan
    └── InterruptedRunError             exit 130

Every error is built from one message, so it survives pickling across processes.  `hint` says what to do next,
`retryable` whether the same call may succeed later.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "BudgetError",
    "ClusterError",
    "EngineDeadError",
    "EngineError",
    "EngineStartError",
    "FingerprintError",
    "IncompleteError",
    "InputError",
    "InterruptedRunError",
    "LeftOutError",
    "LimitReachedError",
    "RecordImportError",
    "RecordmillError",
    "RequestRefusedError",
    "SchemaRefusedError",
    "SpecError",
    "StorageAccessError",
    "StorageError",
    "StorageNotFoundError",
    "UnreadableError",
    "VerificationError",
]


class RecordmillError(Exception):
    """Root of the tree.  `str(error)` is one line: what happened, where, and what to do."""

    hint: ClassVar[str] = ""
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class SpecError(RecordmillError):
    """The job spec cannot be used as written."""

    exit_code = 2


class RecordImportError(SpecError):
    """`record:` names no Pydantic model that can be imported."""

    hint = "`record:` is `package.module:ClassName`, importable from the folder the job is submitted from"


class SchemaRefusedError(SpecError):
    """The record model holds a construct that no sound guide can be made for."""

    hint = "`recordmill lint` shows every field and what to write instead"


class BudgetError(SpecError):
    """`decoding.max_tokens` cannot hold the least record."""


class FingerprintError(SpecError):
    """The output prefix belongs to a run of another job."""

    hint = "choose another output.uri, or submit the job spec that this prefix was started with"


class InputError(RecordmillError):
    """The input holds no documents that can be read as asked."""

    exit_code = 2


class UnreadableError(InputError):
    """One object, row group or page of the input cannot be read."""

    exit_code = 1


class StorageError(RecordmillError):
    """The object store did not do what was asked, after every retry."""

    hint = "the run can be resumed with the same command"
    retryable = True
    exit_code = 3


class StorageAccessError(StorageError):
    """Credentials or permissions refuse the call."""

    hint = "check the credentials, and the rights to that place"
    retryable = False
    exit_code = 2


class StorageNotFoundError(StorageError):
    """The bucket or the object does not exist."""

    hint = "check the spelling and, on S3, the region and the endpoint"
    retryable = False
    exit_code = 2


class EngineError(RecordmillError):
    """An engine could not be started or used."""

    exit_code = 3


class EngineStartError(EngineError):
    """The engine cannot start as configured."""

    exit_code = 2


class EngineDeadError(EngineError):
    """The engine died or fell silent; its worker must be replaced."""

    retryable = True


class RequestRefusedError(EngineError):
    """The engine refused this one request; others are unaffected."""

    exit_code = 1


class ClusterError(RecordmillError):
    """Ray gave out, or the cluster lacks what the run needs."""

    exit_code = 3


class LimitReachedError(RecordmillError):
    """A limit of the job spec stopped the run."""


class IncompleteError(RecordmillError):
    """Not every planned document has an outcome."""

    hint = "run the same command again to resume"


class LeftOutError(IncompleteError):
    """Input objects could not be read when the run was planned; their documents are not in it."""

    hint = "mend them, and run the job over them under a prefix of its own"


class VerificationError(RecordmillError):
    """What is stored contradicts the plan."""


class InterruptedRunError(RecordmillError):
    """The run was told to stop; what was committed stands."""

    hint = "run the same command again to resume"
    exit_code = 130
