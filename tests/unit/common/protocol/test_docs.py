from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.docs import errors_markdown, protocol_markdown


def test_protocol_page_has_every_api_with_its_fields() -> None:
    page = protocol_markdown()

    for api in ApiKeys:
        assert f"\n## {api.api_name}\n" in page
    assert "| 0 | [Produce](#produce) | 0-11 | 9+ | ZooKeeper broker, KRaft broker |" in page
    assert "| topic_data[].partition_data[].records | records | 0+ | 0+ |  |  |" in page
    assert "| max_bytes | int32 | 3+ |  | 2147483647 |  |" in page


def test_errors_page_has_every_error() -> None:
    page = errors_markdown()

    for error in Errors:
        assert f"| {error.code} | {error.name} |" in page
    assert "| 6 | NOT_LEADER_OR_FOLLOWER | after new metadata |" in page
    assert "| 7 | REQUEST_TIMED_OUT | yes |" in page
    assert "| 1 | OFFSET_OUT_OF_RANGE | no |" in page
