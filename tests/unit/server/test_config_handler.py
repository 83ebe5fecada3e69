import pytest

from kafkapy.server.config_handler import TopicConfigHandler


class FakeLogManager:
    def __init__(self) -> None:
        self.updated: list[tuple[str, dict]] = []

    def update_topic_config(self, topic: str, overrides: dict) -> None:
        self.updated.append((topic, overrides))


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"unclean.leader.election.enable": "true"}, ["t"]),
        ({"unclean.leader.election.enable": " TRUE"}, ["t"]),
        ({"unclean.leader.election.enable": "false"}, []),
        ({"retention.ms": "1"}, []),
        ({}, []),
    ],
)
def test_the_controller_hears_of_topics_that_allow_unclean_elections(
    properties: dict, told: list[str]
) -> None:
    log_manager = FakeLogManager()
    enabled: list[str] = []

    TopicConfigHandler(log_manager, enabled.append).process_config_changes("t", properties)

    assert enabled == told
    assert log_manager.updated == [("t", properties)]
