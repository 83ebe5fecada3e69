"""Finds the message classes of an API without importing those of the others."""

from __future__ import annotations

import functools
import importlib
import re

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message


def module_name(api_key: ApiKeys) -> str:
    """The module under `messages` that declares the API, as in "list_offsets"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api_key.api_name).lower()


@functools.cache
def request_class(api_key: ApiKeys) -> type[Message]:
    return _load(api_key, "Request")


@functools.cache
def response_class(api_key: ApiKeys) -> type[Message]:
    return _load(api_key, "Response")


def _load(api_key: ApiKeys, suffix: str) -> type[Message]:
    module = importlib.import_module(f"kafkapy.common.protocol.messages.{module_name(api_key)}")
    cls: type[Message] = getattr(module, api_key.api_name + suffix)
    return cls
