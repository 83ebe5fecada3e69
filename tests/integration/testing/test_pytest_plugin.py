"""The plugin as a project meets it that has just installed kafkapy."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

_PRODUCE = """
    from confluent_kafka import Producer

    def produce(broker, topic, *values):
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(20) == 0
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # Hypothesis alone takes half of the time that pytest needs to start.
    without = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    return pytester.runpytest_subprocess(*without, *arguments, timeout=60)


def test_fixtures_need_no_configuration_and_tests_do_not_see_each_other(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(produce=_PRODUCE)
    pytester.makepyfile(
        """
        import pytest
        from produce import produce

        @pytest.mark.parametrize("number", [1, 2])
        def test_one(kafka_broker, kafka_topic, number):
            assert kafka_broker.records(kafka_topic) == []
            assert kafka_broker.topics() == {kafka_topic: 1}
            produce(kafka_broker, kafka_topic, "v")
            kafka_broker.faults.on("Produce").disconnect()

        def test_other(kafka_broker, kafka_topic):
            assert kafka_topic.startswith("test_other-")
            produce(kafka_broker, kafka_topic, "v")
            assert len(kafka_broker.expect(kafka_topic)) == 1

        def test_topic_that_the_test_deletes(kafka_broker, kafka_topic):
            kafka_broker.delete_topic(kafka_topic)
        """
    )

    result = run(pytester)

    result.assert_outcomes(passed=4)


def test_workers_of_xdist_have_brokers_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_one(kafka_broker, kafka_topic, number, worker_id):
            with open(f"{worker_id}.txt", "w") as file:
                file.write(kafka_broker.bootstrap_servers)
        """
    )

    run(pytester, "-n", "2", "--dist", "load").assert_outcomes(passed=4)

    addresses = [path.read_text() for path in pytester.path.glob("gw*.txt")]
    assert len(set(addresses)) == len(addresses) == 2


def test_a_broker_in_a_process_with_settings_of_the_project(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        """
        [pytest]
        kafkapy_broker_properties =
            num.partitions = 3
            auto.create.topics.enable=true
        """
    )
    pytester.makepyfile(produce=_PRODUCE)
    pytester.makepyfile(
        """
        from kafkapy.testing import BrokerProcess
        from produce import produce

        def test_process(kafka_broker):
            assert isinstance(kafka_broker, BrokerProcess)
            produce(kafka_broker, "made-by-use", "v")
            assert kafka_broker.topics() == {"made-by-use": 3}
        """
    )

    run(pytester, "--kafkapy-broker=process").assert_outcomes(passed=1)


def test_a_project_keeps_its_own_fixtures_and_options(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import sys
        import pytest

        def pytest_addoption(parser):
            parser.addoption("--kafka-broker", default="host:9092")

        @pytest.fixture
        def kafka_broker(request):
            return request.config.getoption("--kafka-broker")
        """
    )
    pytester.makepyfile(
        """
        import sys

        def test_own(kafka_broker):
            assert kafka_broker == "host:9092"
            assert "kafkapy.testing.pytest_plugin" in sys.modules
            heavy = {"kafkapy.server", "kafkapy.common", "kafkapy.utils", "sqlite3"}
            assert not heavy & set(sys.modules)
        """
    )

    run(pytester).assert_outcomes(passed=1)


def test_a_setting_that_cannot_be_read_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkafkapy_broker_properties = num.partitions\n")
    pytester.makepyfile("def test_it(kafka_broker): pass")

    result = run(pytester)

    result.stdout.fnmatch_lines(
        ["*kafkapy_broker_properties: expected name=value, not 'num.partitions'*"]
    )


def test_the_plugin_is_light() -> None:
    program = (
        "import sys, pytest, re, uuid; before = set(sys.modules)\n"
        "import kafkapy.testing.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.split() == ["kafkapy", "kafkapy.testing", "kafkapy.testing.pytest_plugin"]
