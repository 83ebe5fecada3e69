"""When an admin call is tried again, where, and when it gives up."""

from __future__ import annotations

import pytest

from kafkapy.clients.admin import IsolationLevel, NewTopic, OffsetSpec, Results
from kafkapy.clients.admin.admin_api_handler import SingleHandler
from kafkapy.clients.admin.apis.cluster import BrokersHandler, DescribeLogDirsHandler
from kafkapy.clients.admin.apis.groups import DeleteConsumerGroupsHandler
from kafkapy.clients.admin.apis.offsets import ListOffsetsHandler
from kafkapy.clients.admin.apis.topics import CreateTopicsHandler
from kafkapy.clients.admin.lookup_strategy import at_any_broker
from kafkapy.clients.admin.offset_spec import ListOffsetsResultInfo
from kafkapy.clients.admin.topic_description import TopicMetadataAndConfig
from kafkapy.clients.client_errors import DisconnectError
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import metadata_request_for
from kafkapy.common.errors import (
    Errors,
    KafkaError,
    NotControllerError,
    RequestTimeoutError,
    SaslAuthenticationError,
    ThrottlingQuotaExceededError,
    TopicAuthorizationError,
    TopicExistsError,
    UnknownServerError,
)
from kafkapy.common.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkapy.common.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkapy.common.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.types import TopicPartition
from tests.unit.clients.admin.harness import (
    BACKOFF_MS,
    TICK_MS,
    TIMEOUT_MS,
    AdminHarness,
    controller_is,
    coordinators_response,
    offsets_response,
)
from tests.unit.clients.metadata_responses import metadata_response

SMALLEST_BACKOFF_MS = int(BACKOFF_MS * 0.8)  # the jitter
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def harness() -> AdminHarness:
    return AdminHarness()


def created(error: Errors = Errors.NONE, topic: str = "t") -> CreateTopicsResponse:
    result = CreateTopicsResponse.CreatableTopicResult(name=topic, error_code=error.code)
    return CreateTopicsResponse(topics=[result])


def create_topic(
    harness: AdminHarness, *, retry_on_quota_violation: bool = True, timeout_ms: int | None = None
) -> Results[str, TopicMetadataAndConfig]:
    handler = CreateTopicsHandler(
        {"t": NewTopic("t", 1, 1)},
        validate_only=False,
        retry_on_quota_violation=retry_on_quota_violation,
    )
    return harness.calls.run(handler, ["t"], timeout_ms)


def list_offsets(
    harness: AdminHarness, *partitions: TopicPartition
) -> Results[TopicPartition, ListOffsetsResultInfo]:
    handler = ListOffsetsHandler(
        dict.fromkeys(partitions, OffsetSpec.LATEST),
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
    )
    return harness.calls.run(handler, partitions, None, raise_errors=False)


def deleted(*groups: tuple[str, Errors]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=group, error_code=error.code)
            for group, error in groups
        ]
    )


def test_moved_controller_is_found_by_fresh_metadata(harness: AdminHarness) -> None:
    harness.prepare(created(Errors.NOT_CONTROLLER), 0)
    harness.client.prepare_metadata_update(controller_is(2))
    harness.prepare(created(), 2)
    started_ms = harness.time.hi_res_clock_ms()

    create_topic(harness)

    assert harness.time.hi_res_clock_ms() - started_ms >= SMALLEST_BACKOFF_MS
    assert len(harness.requests_of(CreateTopicsRequest)) == 2


def test_old_metadata_does_not_bring_back_the_old_controller(harness: AdminHarness) -> None:
    harness.prepare(created(Errors.NOT_CONTROLLER), 0)

    with pytest.raises(RequestTimeoutError) as raised:
        create_topic(harness)

    assert isinstance(raised.value.__cause__, NotControllerError)
    assert len(harness.requests_of(CreateTopicsRequest)) == 1


def test_unknown_controller_is_waited_for(harness: AdminHarness) -> None:
    harness.client.update_metadata(controller_is(-1))
    harness.client.prepare_metadata_update(controller_is(-1))
    harness.client.prepare_metadata_update(controller_is(1))
    harness.prepare(created(), 1)

    create_topic(harness)


def test_disconnection_is_retried_after_the_backoff(harness: AdminHarness) -> None:
    harness.client.prepare_response(None, disconnected=True)
    harness.prepare(created())
    started_ms = harness.time.hi_res_clock_ms()

    create_topic(harness)

    assert harness.time.hi_res_clock_ms() - started_ms >= SMALLEST_BACKOFF_MS


def test_backoff_grows_with_each_failure(harness: AdminHarness) -> None:
    for _ in range(4):
        harness.client.prepare_response(None, disconnected=True)
    harness.prepare(created())
    started_ms = harness.time.hi_res_clock_ms()

    create_topic(harness)

    assert harness.time.hi_res_clock_ms() - started_ms >= SMALLEST_BACKOFF_MS * (1 + 2 + 4 + 8)


def test_last_error_is_raised_when_the_retries_are_used_up() -> None:
    harness = AdminHarness(retries=2)
    for _ in range(3):
        harness.client.prepare_response(None, disconnected=True)
    harness.prepare(created())

    with pytest.raises(DisconnectError):
        create_topic(harness)

    assert len(harness.requests_of(CreateTopicsRequest)) == 3


def test_error_that_no_retry_can_mend_is_raised_at_once(harness: AdminHarness) -> None:
    harness.prepare(created(Errors.TOPIC_ALREADY_EXISTS))
    started_ms = harness.time.hi_res_clock_ms()

    with pytest.raises(TopicExistsError):
        create_topic(harness)

    assert harness.time.hi_res_clock_ms() - started_ms <= TICK_MS


def test_call_without_an_answer_ends_at_its_time_limit(harness: AdminHarness) -> None:
    started_ms = harness.time.hi_res_clock_ms()

    with pytest.raises(RequestTimeoutError, match="create_topics timed out after 3000 ms"):
        create_topic(harness, timeout_ms=3_000)

    assert 3_000 <= harness.time.hi_res_clock_ms() - started_ms <= 3_000 + 2 * TICK_MS


def test_request_that_is_not_answered_is_sent_again_within_the_time_limit() -> None:
    harness = AdminHarness(request_timeout_ms=1_000)

    with pytest.raises(RequestTimeoutError):
        create_topic(harness, timeout_ms=3_500)

    requests = harness.requests_of(CreateTopicsRequest)
    assert 3 <= len(requests) <= 4
    # The broker may take no longer than the client waits.
    assert requests[0].timeout_ms == 1_000


def test_unreachable_broker_is_named(harness: AdminHarness) -> None:
    for node in harness.metadata.fetch().nodes:
        harness.client.back_off(node, 10**9)

    with pytest.raises(RequestTimeoutError, match=r"cannot reach 127\.0\.0\.1:1000"):
        create_topic(harness)


def test_broker_that_is_not_in_the_cluster_is_named(harness: AdminHarness) -> None:
    with pytest.raises(RequestTimeoutError, match="cannot find broker 17"):
        harness.calls.run(DescribeLogDirsHandler(), [17], None)

    assert harness.requests_of(DescribeLogDirsRequest) == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_at_all(harness: AdminHarness, timeout_ms: int) -> None:
    with pytest.raises((RequestTimeoutError, ValueError), match=r"0 ms|-1"):
        create_topic(harness, timeout_ms=timeout_ms)

    assert harness.client.requests == []


def test_throttled_change_is_tried_again_or_not(harness: AdminHarness) -> None:
    harness.prepare(created(Errors.THROTTLING_QUOTA_EXCEEDED))
    harness.prepare(created())

    create_topic(harness)

    harness.prepare(created(Errors.THROTTLING_QUOTA_EXCEEDED))
    with pytest.raises(ThrottlingQuotaExceededError):
        create_topic(harness, retry_on_quota_violation=False)


def test_time_limit_reached_while_throttled_is_told_as_that(harness: AdminHarness) -> None:
    harness.prepare(created(Errors.THROTTLING_QUOTA_EXCEEDED))

    with pytest.raises(ThrottlingQuotaExceededError):
        create_topic(harness)


def test_partitions_go_to_their_leaders_in_one_request_each(harness: AdminHarness) -> None:
    harness.prepare_leaders(1, 2, 1)
    harness.prepare(offsets_response((0, 10), (2, 12)), 1)
    harness.prepare(offsets_response((1, 11)), 2)

    results = list_offsets(harness, T0, T1, TopicPartition("t", 2))

    assert [info.offset for info in results.values()] == [10, 11, 12]
    asked = [
        [p.partition_index for topic in request.topics for p in topic.partitions]
        for request in harness.requests_of(ListOffsetsRequest)
    ]
    assert sorted(asked) == [[0, 2], [1]]


def test_moved_leader_is_looked_up_again_for_its_partition_alone(harness: AdminHarness) -> None:
    harness.prepare_leaders(1, 1)
    harness.prepare(offsets_response((0, 10), (1, Errors.NOT_LEADER_OR_FOLLOWER)), 1)
    harness.client.prepare_metadata_update(metadata_response(brokers=3))
    harness.prepare_leaders(1, 2)
    harness.prepare(offsets_response((1, 11)), 2)

    results = list_offsets(harness, T0, T1)

    assert [results[T0].offset, results[T1].offset] == [10, 11]


def test_leader_without_an_answer_yet_is_asked_again(harness: AdminHarness) -> None:
    harness.prepare_leaders(1)
    harness.prepare(offsets_response((0, Errors.OFFSET_NOT_AVAILABLE)), 1)
    harness.prepare(offsets_response((0, 10)), 1)

    assert list_offsets(harness, T0)[T0].offset == 10
    assert len(harness.requests_of(MetadataRequest)) == 1


def test_disconnected_leader_is_looked_up_again(harness: AdminHarness) -> None:
    harness.prepare_leaders(1)
    harness.client.prepare_response(None, disconnected=True)
    harness.prepare_leaders(2)
    harness.prepare(offsets_response((0, 10)), 2)

    assert list_offsets(harness, T0)[T0].offset == 10


@pytest.mark.parametrize("error", [Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.LEADER_NOT_AVAILABLE])
def test_topic_that_is_being_made_is_waited_for(harness: AdminHarness, error: Errors) -> None:
    harness.prepare(metadata_response(brokers=3, errors={"t": error}))
    harness.prepare_leaders(1)
    harness.prepare(offsets_response((0, 10)), 1)

    assert list_offsets(harness, T0)[T0].offset == 10


def test_error_of_one_partition_leaves_the_others(harness: AdminHarness) -> None:
    refused = TopicPartition("secret", 0)
    answer = metadata_response(
        {"t": 1}, brokers=3, errors={"secret": Errors.TOPIC_AUTHORIZATION_FAILED}
    )
    harness.prepare(answer)
    harness.prepare(offsets_response((0, 10)), 0)

    results = list_offsets(harness, refused, T0)

    assert results[T0].offset == 10
    with pytest.raises(TopicAuthorizationError, match="secret-0"):
        results[refused]


def test_loading_coordinator_is_asked_again(harness: AdminHarness) -> None:
    harness.prepare(coordinators_response(["g"], 1))
    harness.prepare(deleted(("g", Errors.COORDINATOR_LOAD_IN_PROGRESS)), 1)
    harness.prepare(deleted(("g", Errors.NONE)), 1)

    harness.calls.run(DeleteConsumerGroupsHandler(), ["g"], None)

    assert len(harness.requests_of(FindCoordinatorRequest)) == 1


def test_moved_coordinator_is_looked_up_again_for_its_group_alone(harness: AdminHarness) -> None:
    harness.prepare(coordinators_response(["g", "h"], 1))
    harness.prepare(deleted(("g", Errors.NOT_COORDINATOR), ("h", Errors.NONE)), 1)
    harness.client.prepare_metadata_update(metadata_response(brokers=3))
    harness.prepare(coordinators_response(["g"], 2))
    harness.prepare(deleted(("g", Errors.NONE)), 2)

    harness.calls.run(DeleteConsumerGroupsHandler(), ["g", "h"], None)

    assert [r.groups_names for r in harness.requests_of(DeleteGroupsRequest)] == [["g", "h"], ["g"]]


def test_coordinator_that_is_not_available_yet_is_looked_up_again(harness: AdminHarness) -> None:
    harness.prepare(coordinators_response(["g"], -1, Errors.COORDINATOR_NOT_AVAILABLE))
    harness.prepare(coordinators_response(["g"], 1))
    harness.prepare(deleted(("g", Errors.NONE)), 1)

    harness.calls.run(DeleteConsumerGroupsHandler(), ["g"], None)


def test_response_that_leaves_a_key_out_fails_that_key(harness: AdminHarness) -> None:
    harness.prepare(coordinators_response(["g", "h"], 1))
    harness.prepare(deleted(("h", Errors.NONE)), 1)

    results = harness.calls.run(DeleteConsumerGroupsHandler(), ["g", "h"], None, raise_errors=False)

    assert results.successes == {"h": None}
    with pytest.raises(UnknownServerError, match="leaves out g"):
        results["g"]


def test_first_error_is_raised_in_the_order_of_the_keys(harness: AdminHarness) -> None:
    harness.prepare(coordinators_response(["g", "h"], 1))
    harness.prepare(
        deleted(("h", Errors.NON_EMPTY_GROUP), ("g", Errors.GROUP_AUTHORIZATION_FAILED)), 1
    )

    with pytest.raises(KafkaError, match=r"^g: "):
        harness.calls.run(DeleteConsumerGroupsHandler(), ["g", "h"], None)


def test_nothing_is_sent_for_no_keys(harness: AdminHarness) -> None:
    assert harness.calls.run(DeleteConsumerGroupsHandler(), [], None) == {}
    assert harness.client.requests == []


def test_failed_authentication_ends_the_call(harness: AdminHarness) -> None:
    harness.metadata.fatal_error(SaslAuthenticationError("wrong password"))

    with pytest.raises(SaslAuthenticationError, match="wrong password"):
        create_topic(harness)


def test_failure_while_reading_a_response_reaches_the_caller(harness: AdminHarness) -> None:
    class Broken(SingleHandler[None, MetadataResponse]):
        call_name = "broken"

        def build(self, timeout_ms: int) -> VersionedRequest:
            return metadata_request_for((), allow_auto_topic_creation=True)

        def read(self, response: MetadataResponse) -> None:
            raise ZeroDivisionError("a mistake")

    harness.prepare(metadata_response(brokers=3))

    with pytest.raises(KafkaError, match="broken: a mistake"):
        harness.calls.run_one(Broken(at_any_broker()), None)


def test_interrupted_call_leaves_nothing_behind(
    harness: AdminHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(timeout_ms: int, now_ms: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(harness.client, "poll", interrupt)
        with pytest.raises(KeyboardInterrupt):
            create_topic(harness)

    harness.client.respond(created())
    harness.prepare(metadata_response(brokers=3))
    assert harness.calls.run_one(BrokersHandler(), TIMEOUT_MS) == [0, 1, 2]
