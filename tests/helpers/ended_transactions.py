"""The end of a transaction is answered before its markers are written; a reader may be quicker."""

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.admin.transaction_description import TransactionState
from tests.helpers.waiting import wait_until

_ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def await_ended_transactions(bootstrap_servers: str) -> None:
    """Until every transaction that was told to end has ended in all its partitions."""
    with AdminClient(bootstrap_servers=bootstrap_servers) as admin:
        wait_until(lambda: not admin.list_transactions(states=_ENDING), 30)
