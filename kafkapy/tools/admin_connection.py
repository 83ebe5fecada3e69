"""The admin client that a command works through."""

from __future__ import annotations

import argparse
import logging
from uuid import UUID

from kafkapy.clients.admin import AdminClient, AdminClientConfig
from kafkapy.tools.client_arguments import known_settings, load_property_file


def connect_admin(parsed: argparse.Namespace) -> AdminClient:
    """As --bootstrap-server and --command-config, or --admin.config, say."""
    logger = logging.getLogger("kafkapy.clients")
    if not logger.handlers:
        # What goes wrong for good ends the command with an error. Without a handler Python would
        # show every attempt before that.
        logger.addHandler(logging.NullHandler())
    given = vars(parsed)
    properties = load_property_file(given.get("command_config") or given.get("admin_config"))
    properties["bootstrap.servers"] = parsed.bootstrap_server
    return AdminClient(properties=known_settings(AdminClientConfig, properties))


def existing_topics(admin: AdminClient) -> dict[str, UUID]:
    """All topics with their ids, sorted by name, internal ones too."""
    topics = admin.list_topics(list_internal=True)
    return {name: topics[name].topic_id for name in sorted(topics)}
