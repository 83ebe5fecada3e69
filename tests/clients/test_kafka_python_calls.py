"""Who comes from kafka-python finds its calls, with the names that its arguments have."""

import inspect

import kafka
import pytest

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.consumer import KafkaConsumer
from kafkapy.clients.producer import KafkaProducer

# What docs/clients.md says is different, and what kafka-python has for itself.
_ELSEWHERE = {
    kafka.KafkaProducer: {"max_usable_produce_magic"},
    kafka.KafkaConsumer: {"bootstrap", "bootstrap_connected"},
}
_ARGUMENTS_ELSEWHERE = {"null_logger", "raw"}


def _calls(cls: type) -> dict[str, list[str]]:
    """The public methods and their arguments."""
    return {
        name: list(inspect.signature(call).parameters)
        for name, call in inspect.getmembers(cls, callable)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("theirs", "ours"), [(kafka.KafkaProducer, KafkaProducer), (kafka.KafkaConsumer, KafkaConsumer)]
)
def test_every_call_and_argument_is_there(theirs: type, ours: type) -> None:
    known = _calls(ours)

    for name, arguments in _calls(theirs).items():
        if name not in _ELSEWHERE[theirs]:
            # The one partition that kafka-python's takes may be several here.
            wanted = {{"partition": "partitions"}.get(a, a) for a in arguments}
            have = {{"partition": "partitions"}.get(a, a) for a in known[name]}
            assert wanted - _ARGUMENTS_ELSEWHERE <= have, name


@pytest.mark.parametrize(
    "name",
    [
        *("create_topics", "delete_topics", "list_topics", "describe_topics", "create_partitions"),
        *("describe_configs", "alter_configs", "delete_records", "describe_cluster"),
        *("describe_acls", "create_acls", "delete_acls", "describe_log_dirs", "close"),
        *("describe_user_scram_credentials", "alter_user_scram_credentials"),
        *("elect_leaders", "alter_partition_reassignments", "list_partition_reassignments"),
        *("describe_producers", "describe_transactions", "list_transactions", "abort_transaction"),
    ],
)
def test_calls_of_administration_have_the_same_names(name: str) -> None:
    assert callable(getattr(kafka.KafkaAdminClient, name))
    assert callable(getattr(AdminClient, name))
