"""Reading of tokens from AWS Secrets Manager; the only module that imports boto3 (extra `aws`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import InputError, MissingPackage
from omnigraph.redaction import redact

CONNECT_S, ANSWER_S, TRIES = 5.0, 10.0, 2


def read_secret(secret_id: str, environ: Mapping[str, str]) -> str:
    """Return the text of a secret by its name or ARN; `environ` has the variables of AWS.

    Credentials that it lacks come from the files and services that AWS programs use.
    """
    try:
        import boto3  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
        from botocore.parsers import ResponseParserError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingPackage(
            f"the AWS secret '{secret_id}' needs the package '{error.name}', which is not installed",
            hint="install it: pip install 'omnigraph[aws]'",
        ) from None
    try:
        answer = _client(boto3, secret_id, environ).get_secret_value(SecretId=secret_id)
    except ClientError as error:
        raise _failed(secret_id, _reason(error.response.get("Error", {}))) from None
    except BotoCoreError as error:
        raise _failed(secret_id, str(error)) from None
    except (ResponseParserError, AttributeError, TypeError, ValueError):
        # boto3 fails in these ways on an answer of another shape.
        raise _failed(secret_id, "the answer is not one of Secrets Manager") from None
    text = answer.get("SecretString")
    if not isinstance(text, str):
        raise _failed(secret_id, "it has no text (SecretString)")
    return text


def _reason(failure: dict[str, str]) -> str:
    code = failure.get("Code", "")
    if code.isdigit():
        # The answer has no error of the service; its body can contain anything.
        return f"the endpoint answered with status {code}"
    return f"{code}: {failure.get('Message', '')}"


def _client(boto3: Any, secret_id: str, environ: Mapping[str, str]) -> Any:
    from botocore.config import Config  # noqa: PLC0415

    def given(*names: str) -> str | None:
        return next((environ[name].strip() for name in names if environ.get(name, "").strip()), None)

    config = Config(
        connect_timeout=CONNECT_S, read_timeout=ANSWER_S, retries={"total_max_attempts": TRIES, "mode": "standard"}
    )
    key = given("AWS_ACCESS_KEY_ID")
    session = boto3.session.Session(profile_name=given("AWS_PROFILE") if key is None else None)
    return session.client(
        "secretsmanager",
        region_name=_region(secret_id) or given("AWS_REGION", "AWS_DEFAULT_REGION"),
        endpoint_url=given("AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_ENDPOINT_URL"),
        aws_access_key_id=key,
        aws_secret_access_key=given("AWS_SECRET_ACCESS_KEY") if key is not None else None,
        aws_session_token=given("AWS_SESSION_TOKEN") if key is not None else None,
        config=config,
    )


def _region(secret_id: str) -> str | None:
    """Return the region of an ARN."""
    parts = secret_id.split(":")
    return parts[3] or None if parts[0] == "arn" and len(parts) > 3 else None


def _failed(secret_id: str, reason: str) -> InputError:
    return InputError(
        f"the AWS secret '{secret_id}' cannot be read: {redact(reason).strip()}",
        code="token_source_failed",
        hint="check its name, AWS_REGION, the credentials, and the permission secretsmanager:GetSecretValue",
    )
