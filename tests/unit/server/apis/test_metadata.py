from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.network.request_channel import Request, RequestContext
from kafkapy.server.apis.metadata import MetadataHandler

VERSION = 9


class CountingList(list):
    """Knows how often it was gone through."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()


class FakeMetadataCache:
    """Has every topic."""

    controller_id = 0

    def __init__(self) -> None:
        self.found = CountingList()

    def get_topic_metadata(self, names, listener, **_):
        self.found.extend(MetadataResponse.MetadataResponseTopic(name=name) for name in names)
        return self.found

    def get_alive_broker_nodes(self, listener):
        return []


class FakeRequestChannel:
    def __init__(self) -> None:
        self.responses: list[MetadataResponse] = []

    def send_response(self, request, response) -> None:
        self.responses.append(response)


def test_work_grows_with_the_number_of_topics_and_not_with_its_square() -> None:
    channel = FakeRequestChannel()
    cache = FakeMetadataCache()
    handler = MetadataHandler(
        channel,
        cache,
        None,
        auto_create_topics=False,
        cluster_id="cluster",
        max_describe_partitions=1,
        is_starting=lambda: False,
    )
    topics = [MetadataRequest.MetadataRequestTopic(name=f"t{n}") for n in range(100)]
    header = RequestHeader(
        api_key=ApiKeys.METADATA, api_version=VERSION, correlation_id=1, client_id="test"
    )

    handler.handle_metadata(
        Request(RequestContext(header, "connection", "127.0.0.1"), MetadataRequest(topics=topics))
    )

    assert cache.found.walks <= 3
    (response,) = channel.responses
    assert [topic.name for topic in response.topics] == [topic.name for topic in topics]
