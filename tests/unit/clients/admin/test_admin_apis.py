"""Admin calls to brokers of other versions, and answers that no broker at hand gives."""

from __future__ import annotations

import pytest

from kafkapy.clients.admin import (
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ClientQuotaMatch,
    ConsumerGroupState,
    GroupType,
    IsolationLevel,
    KafkaPrincipal,
    MemberToRemove,
    NewTopic,
    OffsetSpec,
    Results,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafkapy.clients.admin.apis.cluster import DescribeClusterHandler, DescribeLogDirsHandler
from kafkapy.clients.admin.apis.delegation_tokens import (
    CreateDelegationTokenHandler,
    DescribeDelegationTokenHandler,
)
from kafkapy.clients.admin.apis.group_offsets import ListConsumerGroupOffsetsHandler
from kafkapy.clients.admin.apis.groups import (
    DescribeClassicGroupsHandler,
    DescribeConsumerGroupsHandler,
)
from kafkapy.clients.admin.apis.offsets import ListOffsetsHandler
from kafkapy.clients.admin.apis.topics import DeleteTopicsHandler
from kafkapy.clients.consumer import OffsetAndMetadata
from kafkapy.common.errors import (
    ClusterAuthorizationError,
    Errors,
    GroupIdNotFoundError,
    InvalidGroupIdError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
)
from kafkapy.common.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkapy.common.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafkapy.common.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenResponse,
)
from kafkapy.common.protocol.messages.describe_groups import DescribeGroupsResponse
from kafkapy.common.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from kafkapy.common.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.common.types import TopicPartition, random_topic_id
from tests.unit.clients.admin.harness import (
    AdminHarness,
    coordinators_response,
    offsets_response,
)
from tests.unit.clients.metadata_responses import metadata_response

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")


@pytest.fixture
def harness() -> AdminHarness:
    return AdminHarness()


def offset_fetch_response(offset: int) -> OffsetFetchResponse:
    """As before version 8, when it was about one group."""
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name="t",
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=0, committed_offset=offset, metadata="note"
                    )
                ],
            )
        ]
    )


def test_broker_that_finds_one_coordinator_at_a_time(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.FIND_COORDINATOR, at_most=3)
    for _ in range(2):
        harness.prepare(FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=1))
    for group in ("g", "h"):
        described = DescribeGroupsResponse.DescribedGroup(group_id=group, group_state="Empty")
        harness.prepare(DescribeGroupsResponse(groups=[described]))

    handler = DescribeClassicGroupsHandler(include_authorized_operations=False)
    results = harness.calls.run(handler, ["g", "h"], None)

    assert list(results) == ["g", "h"]
    assert [r.key for r in harness.requests_of(FindCoordinatorRequest)] == ["g", "h"]


def test_broker_that_tells_one_groups_offsets_at_a_time(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.OFFSET_FETCH, at_most=7)
    harness.prepare(coordinators_response(["g", "h"], 1))
    harness.prepare(offset_fetch_response(3))
    harness.prepare(offset_fetch_response(-1))

    handler = ListConsumerGroupOffsetsHandler({"g": None, "h": [T0]}, require_stable=True)
    offsets = harness.calls.run(handler, ["g", "h"], None)

    assert offsets == {"g": {T0: OffsetAndMetadata(3, "note")}, "h": {T0: None}}
    first, second = harness.requests_of(OffsetFetchRequest)
    assert (first.group_id, first.topics) == ("g", None)
    assert second.group_id == "h" and second.require_stable


def test_stable_offsets_need_a_broker_that_knows_them(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.OFFSET_FETCH, at_most=6)
    harness.prepare(coordinators_response(["g"], 1))

    with pytest.raises(UnsupportedVersionError, match="OffsetFetch"):
        handler = ListConsumerGroupOffsetsHandler({"g": None}, require_stable=True)
        harness.calls.run(handler, ["g"], None)


def test_spec_that_the_broker_lacks_fails_its_partition_alone(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.LIST_OFFSETS, at_most=6)
    harness.prepare_leaders(1, 1)
    harness.prepare(offsets_response((1, 11)), 1)
    specs = {T0: OffsetSpec.MAX_TIMESTAMP, T1: OffsetSpec.LATEST}

    handler = ListOffsetsHandler(specs, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    results = harness.calls.run(handler, specs, None, raise_errors=False)

    assert results[T1].offset == 11
    with pytest.raises(UnsupportedVersionError, match="ListOffsets"):
        results[T0]


def test_cluster_of_old_brokers_is_described_by_metadata(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.DESCRIBE_CLUSTER, at_most=None)
    harness.prepare(metadata_response(brokers=3, controller_id=2))

    handler = DescribeClusterHandler(include_authorized_operations=True)
    cluster = harness.calls.run_one(handler, None)

    assert [node.id for node in cluster.nodes] == [0, 1, 2]
    assert cluster.controller == cluster.nodes[2]


def test_old_broker_deletes_topics_by_name_alone(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.DELETE_TOPICS, at_most=5)
    harness.prepare(
        DeleteTopicsResponse(
            responses=[DeleteTopicsResponse.DeletableTopicResult(name="t", error_code=0)]
        )
    )

    harness.calls.run(DeleteTopicsHandler(retry_on_quota_violation=True), ["t"], None)

    assert harness.requests_of(DeleteTopicsRequest)[0].topic_names == ["t"]
    with pytest.raises(UnsupportedVersionError, match="by id"):
        handler = DeleteTopicsHandler(retry_on_quota_violation=True)
        harness.calls.run(handler, [random_topic_id()], None)


def test_log_directories_of_an_old_broker_that_tells_nothing(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.DESCRIBE_LOG_DIRS, at_most=2)
    harness.prepare(DescribeLogDirsResponse())

    with pytest.raises(ClusterAuthorizationError):
        harness.calls.run(DescribeLogDirsHandler(), [1], None)


def test_group_of_another_protocol_is_not_a_consumer_group(harness: AdminHarness) -> None:
    harness.prepare(coordinators_response(["workers"], 1))
    harness.prepare(
        DescribeGroupsResponse(
            groups=[
                DescribeGroupsResponse.DescribedGroup(
                    group_id="workers", group_state="Stable", protocol_type="connect"
                )
            ]
        )
    )

    with pytest.raises(InvalidGroupIdError, match=r"workers: .*'connect'"):
        handler = DescribeClassicGroupsHandler(include_authorized_operations=False)
        harness.calls.run(handler, ["workers"], None)


def test_group_of_the_newer_protocol_is_described(harness: AdminHarness) -> None:
    message = ConsumerGroupDescribeResponse
    topic = message.TopicPartitions(topic_name="t", partitions=[0, 1])
    member = message.Member(member_id="m", assignment=message.Assignment(topic_partitions=[topic]))
    harness.prepare(coordinators_response(["g", "classic"], 1))
    harness.prepare(
        ConsumerGroupDescribeResponse(
            groups=[
                message.DescribedGroup(
                    group_id="g",
                    group_state="Reconciling",
                    assignor_name="uniform",
                    members=[member],
                ),
                message.DescribedGroup(
                    group_id="classic", error_code=Errors.GROUP_ID_NOT_FOUND.code
                ),
            ]
        )
    )

    handler = DescribeConsumerGroupsHandler(include_authorized_operations=False)
    results = harness.calls.run(handler, ["g", "classic"], None, raise_errors=False)

    group = results["g"]
    assert (group.group_type, group.state) == (GroupType.CONSUMER, ConsumerGroupState.RECONCILING)
    assert group.members[0].assignment == {T0, T1}
    assert group.members[0].target_assignment == frozenset()
    with pytest.raises(GroupIdNotFoundError, match="classic"):
        results["classic"]


def test_what_is_tried_again_takes_the_place_of_the_first_results() -> None:
    error, other = GroupIdNotFoundError("b"), GroupIdNotFoundError("c")
    first: Results[str, int] = Results(("a", "b", "c"), {"a": 1}, {"b": error, "c": error})

    both = first.replaced_by(Results(("b", "c"), {"b": 2}, {"c": other}))

    assert list(both) == ["a", "b", "c"]
    assert both.successes == {"a": 1, "b": 2} and both.errors == {"c": other}


def test_token_is_made_for_somebody_else(harness: AdminHarness) -> None:
    harness.prepare(
        CreateDelegationTokenResponse(
            principal_type="User",
            principal_name="bob",
            token_requester_principal_type="User",
            token_requester_principal_name="alice",
            issue_timestamp_ms=1,
            expiry_timestamp_ms=2,
            max_timestamp_ms=3,
            token_id="id",
            hmac=b"secret",
        )
    )

    handler = CreateDelegationTokenHandler(owner=BOB, renewers=[ALICE], max_lifetime_ms=-1)
    token = harness.calls.run_one(handler, None)

    (request,) = harness.requests_of(CreateDelegationTokenRequest)
    assert request.owner_principal_name == "bob"
    assert (token.owner, token.token_requester, token.renewers) == (BOB, ALICE, (ALICE,))
    assert (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp) == (1, 2, 3)
    assert token.hmac_as_base64 == "c2VjcmV0"
    assert "secret" not in repr(token)


def test_token_of_an_older_broker_was_asked_for_by_its_owner(harness: AdminHarness) -> None:
    harness.broker_has(ApiKeys.DESCRIBE_DELEGATION_TOKEN, at_most=2)
    described = DescribeDelegationTokenResponse.DescribedDelegationToken(
        principal_type="User", principal_name="bob", token_id="id", hmac=b"secret"
    )
    harness.prepare(DescribeDelegationTokenResponse(tokens=[described]))

    (token,) = harness.calls.run_one(DescribeDelegationTokenHandler(None), None)

    assert token.owner == token.token_requester == BOB


def test_contradictions_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="topic 't'"):
        NewTopic("t", num_partitions=1, replica_assignments={0: [0]})
    with pytest.raises(ValueError, match="group_instance_id or a member_id"):
        MemberToRemove()
    with pytest.raises(ValueError, match="user: a name"):
        ClientQuotaFilterComponent("user", ClientQuotaMatch.DEFAULT, "alice")
    with pytest.raises(ValueError, match="user 'alice'"):
        UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, "")
    assert "secret" not in repr(
        UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, "secret")
    )


def test_quota_entities_are_equal_in_any_order() -> None:
    entity = ClientQuotaEntity({"user": "alice", "client-id": None})

    assert {entity: 1}[ClientQuotaEntity({"client-id": None, "user": "alice"})] == 1
    assert entity != ClientQuotaEntity({"user": "alice"})
