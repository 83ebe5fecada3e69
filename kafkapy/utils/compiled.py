"""Whether the hot modules run as mypyc has compiled them; they are compiled all or none."""

from typing import Final

from kafkapy.utils import varint

IS_COMPILED: Final = not varint.__file__.endswith(".py")
