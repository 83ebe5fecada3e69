"""Tests of the clients that must pass against Apache Kafka as well as against kafkapy.

They are the tests of the modules they come from, with the broker of this directory: subscription
modes, rebalances, forms of commit, reset policies, transactions and codecs. Skipped with the reason
where Kafka's jars are not there; KAFKAPY_COMPAT_BROKER=apache runs all of tests/clients this way.
"""

from tests.clients.test_consumer_groups import (  # noqa: F401
    group,
    test_a_commit_during_a_rebalance_can_be_repeated_after_a_poll,
    test_a_cooperative_rebalance_revokes_only_what_goes,
    test_a_static_member_comes_back_to_its_partitions_without_a_rebalance,
    test_an_eager_rebalance_revokes_everything_first,
    test_enforcing_a_rebalance_starts_a_generation,
    test_members_share_partitions_and_take_over_from_one_that_leaves,
    test_of_two_members_with_one_instance_id_the_older_is_fenced,
)
from tests.clients.test_consumer_modes import (  # noqa: F401
    test_a_changed_subscription_replaces_the_old_one,
    test_a_pattern_takes_whole_names_and_topics_that_come_later,
    test_an_assignment_that_changes_keeps_the_positions_of_what_stays,
    test_assigned_partitions_are_read_and_no_others,
    test_nothing_is_read_after_unsubscribing,
    test_subscribed_topics_are_read,
)
from tests.clients.test_consumer_offsets import (  # noqa: F401
    partition,
    test_a_committed_offset_goes_before_the_policy,
    test_a_position_outside_the_log_is_reset,
    test_a_position_outside_the_log_raises_without_a_policy,
    test_auto_commit_commits_at_its_interval,
    test_closing_commits_when_that_is_automatic,
    test_closing_without_automatic_commits_commits_nothing,
    test_commit_async_calls_back_in_order,
    test_commit_sync_commits_what_was_returned,
    test_commit_sync_takes_offsets_as_numbers_too,
    test_earliest_starts_at_the_first_record,
    test_iterating_commits_only_what_was_handed_out,
    test_latest_starts_after_the_last_record,
    test_none_raises_without_a_committed_offset,
)
from tests.clients.test_consumer_records import (  # noqa: F401
    test_every_codec_is_read,
    test_read_committed_leaves_out_what_was_aborted,
    test_read_committed_waits_for_an_open_transaction,
)
from tests.clients.test_producer import test_every_codec_keeps_records_and_order  # noqa: F401
from tests.clients.test_producer_transactions import (  # noqa: F401
    test_abort_fails_what_was_not_sent,
    test_close_aborts_the_open_transaction,
    test_commit_sends_what_lingers,
    test_committed_records_are_read_and_aborted_ones_are_not,
    test_empty_transactions_end,
    test_failed_record_fails_the_commit_and_abort_recovers,
    test_newer_producer_of_the_same_id_fences_the_older,
    test_offsets_are_committed_with_the_transaction,
    test_offsets_of_a_member_that_is_gone_fail_the_transaction,
)
from tests.compat.brokers import Broker


def test_the_broker_is_apache_kafka(broker: Broker) -> None:
    assert broker.is_apache
