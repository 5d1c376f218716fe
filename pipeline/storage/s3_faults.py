"""Owns what an error of s3fs, botocore or the network under them means: by code or type, never by message."""

from __future__ import annotations

import enum
import http.client
from typing import Any, cast

import aiohttp
from botocore import exceptions as boto

__all__ = ["FOREIGN", "Fault", "classify", "response_of"]


class Fault(enum.Enum):
    """What an error of the library means for us."""

    AGAIN = enum.auto()
    ACCESS = enum.auto()
    MISSING = enum.auto()
    PRECONDITION = enum.auto()
    OTHER = enum.auto()


_CODE_WORDS = {
    # 409 is "a conflicting put is in flight", never "exists".  NoSuchUpload: a multipart upload whose completion was
    # applied although its answer was lost can no longer be aborted.
    Fault.AGAIN: """
        408 409 429 500 502 503 504 BadDigest BandwidthLimitExceeded ConditionalRequestConflict IncompleteBody
        InternalError NoSuchUpload OperationAborted RequestTimeout ServiceUnavailable SlowDown Throttling
        ThrottlingException XAmzContentSHA256Mismatch""",
    Fault.ACCESS: """
        401 403 AccessDenied AccountProblem AllAccessDisabled ExpiredToken Forbidden InvalidAccessKeyId InvalidSecurity
        InvalidToken NotSignedUp RequestTimeTooSkewed SignatureDoesNotMatch TokenRefreshRequired""",
    Fault.MISSING: """
        301 307 404 AuthorizationHeaderMalformed IllegalLocationConstraintException InvalidBucketName NoSuchBucket
        NoSuchKey NotFound PermanentRedirect TemporaryRedirect""",
    Fault.PRECONDITION: "412 PreconditionFailed",
}
_CODES = {code: fault for fault, words in _CODE_WORDS.items() for code in words.split()}
"""By error code, as S3 and its imitators send it in the body, or the HTTP status where there is no body."""

_TYPES: tuple[tuple[tuple[type[BaseException], ...], Fault], ...] = (
    (
        (
            boto.NoCredentialsError,
            boto.PartialCredentialsError,
            boto.CredentialRetrievalError,
            boto.TokenRetrievalError,
            boto.ProfileNotFound,
            boto.UnauthorizedSSOTokenError,
        ),
        Fault.ACCESS,
    ),
    ((boto.ParamValidationError, boto.InvalidRegionError), Fault.MISSING),
    (
        (
            boto.ConnectionError,
            boto.HTTPClientError,
            boto.IncompleteReadError,
            aiohttp.ClientError,
            http.client.HTTPException,
            ConnectionError,
            TimeoutError,
        ),
        Fault.AGAIN,
    ),
    ((PermissionError,), Fault.ACCESS),
    ((FileNotFoundError,), Fault.MISSING),
)
"""By type, first match, for what carries no code: it never reached the server, or the answer never reached us."""

FOREIGN: tuple[type[Exception], ...] = (
    OSError,
    boto.BotoCoreError,
    boto.ClientError,
    aiohttp.ClientError,
    http.client.HTTPException,
)


def response_of(error: BaseException) -> dict[str, Any] | None:
    """The server's answer that an error stems from: s3fs hangs botocore's error under its own."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, boto.ClientError):
            return cast(dict[str, Any], seen.response)
        seen = seen.__cause__
    return None


def classify(error: Exception) -> tuple[Fault, str]:
    """What an error means, and its code (or type) for the message."""
    response = response_of(error)
    if response is None:
        fault = next((fault for types, fault in _TYPES if isinstance(error, types)), Fault.OTHER)
        return fault, type(error).__name__
    code = str(response.get("Error", {}).get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    fault = _CODES.get(code) or _CODES.get(str(status)) or (Fault.AGAIN if status >= 500 else Fault.OTHER)
    return fault, code or str(status)
