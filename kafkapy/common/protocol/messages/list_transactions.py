"""ListTransactions: list the transactions that a broker coordinates."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(
    Message, api_key=ApiKeys.LIST_TRANSACTIONS, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ListTransactionsRequestData"""

    state_filters: list[str] = array(string, "0+")
    producer_id_filters: list[int] = array(int64, "0+")
    duration_filter: int = int64("1+", default=-1)


class ListTransactionsResponse(
    Message, api_key=ApiKeys.LIST_TRANSACTIONS, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ListTransactionsResponseData"""

    class TransactionState(Struct):
        transactional_id: str = string("0+")
        producer_id: int = int64("0+")
        transaction_state: str = string("0+")

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    unknown_state_filters: list[str] = array(string, "0+")
    transaction_states: list[TransactionState] = array("TransactionState", "0+")
