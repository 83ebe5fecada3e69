from __future__ import annotations

from kafkapy.common.protocol.schema import Message, bool_, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """The principal of the client whose request is forwarded in an Envelope.

    Ports: org.apache.kafka.common.message.DefaultPrincipalData
    """

    type: str = string("0+")
    name: str = string("0+")
    token_authenticated: bool = bool_("0+")
