from __future__ import annotations

from enum import IntEnum
from typing import Self


class ProtocolEnum(IntEnum):
    """Numbers of the protocol of which later releases may add some: what has none here is 0.

    Each of them calls its 0 UNKNOWN.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls(0)
