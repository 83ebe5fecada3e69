"""PEM texts out of settings."""

from __future__ import annotations

import re
import textwrap

# At the end no more dashes than belong there: those of the next section may follow at once.
_SECTION = re.compile(r"-+BEGIN\s+([^-]+?)\s*-+(.*?)-+END\s+\1\s*-{1,5}", re.DOTALL)
_LINE = 64


def with_lines(text: str) -> str:
    """The sections of a PEM text as OpenSSL wants them.

    A property that goes over several lines by backslashes has lost its line breaks, and Kafka does
    not mind.
    """
    sections = []
    for label, body in _SECTION.findall(text):
        # A header, such as that of an old kind of encryption, only makes sense with its lines.
        lines = [body.strip()] if ":" in body else textwrap.wrap("".join(body.split()), _LINE)
        sections += [f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"]
    return "\n".join(sections) + "\n"
