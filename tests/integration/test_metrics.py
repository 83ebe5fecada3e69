"""What is told to Prometheus after some traffic."""

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.helpers import api
from tests.helpers.broker import Broker, running_broker
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.integration.conftest import MakeBroker

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

_BATCHES = 5
_RECORDS_EACH = 3
_TIMES = (
    "totaltimems",
    "requestqueuetimems",
    "localtimems",
    "remotetimems",
    "responsequeuetimems",
    "responsesendtimems",
)
_TOPIC_METERS = (
    "messagesin",
    "bytesin",
    "bytesout",
    "totalproducerequests",
    "failedproducerequests",
    "totalfetchrequests",
    "failedfetchrequests",
)


def _samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _names(samples: Samples) -> set[str]:
    return {name for name, _ in samples}


def _one(samples: Samples, name: str, **labels: str) -> float:
    found = [
        value
        for (sample, own), value in samples.items()
        if sample == name and labels.items() <= dict(own).items()
    ]
    assert len(found) == 1, f"{len(found)} samples of {name} {labels}"
    return found[0]


def _exactly(samples: Samples, name: str, **labels: str) -> float:
    return samples[(name, frozenset(labels.items()))]


def _traffic(broker: Broker, topic: str) -> int:
    """Produces and fetches; the bytes of records fetched."""
    with broker.client() as client:
        api.create_topic(client, topic, partitions=2)
        for _ in range(_BATCHES):
            api.produced(client, topic, records(*("x" * 10,) * _RECORDS_EACH))
        data = api.fetch(client, topic)
        api.fetch(client, topic, 15, max_wait_ms=30, min_bytes=100)
        api.fetch(client, topic, 10_000)
        api.produce(client, topic, records("x", offset=9))
        # A request is counted once it is answered; those before the last one are by now.
        api.topic_metadata(client, topic)
        return len(data.records or b"")


@pytest.fixture(scope="module")
def metered_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    properties = {"prometheus.port": "0"}
    with running_broker(tmp_path_factory.mktemp("metered"), properties) as broker:
        yield broker


@pytest.fixture(scope="module")
def fetched_bytes(metered_broker: Broker) -> int:
    return _traffic(metered_broker, "metered")


@pytest.fixture(scope="module")
def samples(metered_broker: Broker, fetched_bytes: int) -> Samples:
    return _samples(metered_broker.scrape())


def test_messages_in_are_the_records_produced(samples: Samples) -> None:
    name = "kafka_server_brokertopicmetrics_messagesin_total"

    assert _exactly(samples, name, topic="metered") == _BATCHES * _RECORDS_EACH
    assert _exactly(samples, name) == _BATCHES * _RECORDS_EACH


def test_bytes_out_are_the_bytes_fetched(samples: Samples, fetched_bytes: int) -> None:
    assert fetched_bytes > 0
    name = "kafka_server_brokertopicmetrics_bytesout_total"
    assert _exactly(samples, name, topic="metered") == fetched_bytes


def test_bytes_in_are_the_size_of_the_log(samples: Samples) -> None:
    name = "kafka_server_brokertopicmetrics_bytesin_total"
    size = _one(samples, "kafka_log_log_size", topic="metered", partition="0")

    assert _exactly(samples, name, topic="metered") == size > 0


@pytest.mark.parametrize("meter", _TOPIC_METERS)
def test_every_topic_meter_of_the_dashboards_is_there(samples: Samples, meter: str) -> None:
    name = f"kafka_server_brokertopicmetrics_{meter}_total"

    assert _exactly(samples, name, topic="metered") > 0 or meter.startswith("failed")
    assert _exactly(samples, name) >= _exactly(samples, name, topic="metered")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kafka_server_replicamanager_partitioncount", 2),
        ("kafka_server_replicamanager_leadercount", 2),
        ("kafka_server_replicamanager_underreplicatedpartitions", 0),
        ("kafka_server_replicamanager_underminisrpartitioncount", 0),
        ("kafka_controller_kafkacontroller_activecontrollercount", 1),
        ("kafka_controller_kafkacontroller_offlinepartitionscount", 0),
        ("kafka_controller_kafkacontroller_globaltopiccount", 1),
        ("kafka_controller_kafkacontroller_globalpartitioncount", 2),
        ("kafka_controller_controllerstats_uncleanleaderelections_total", 0),
        ("kafka_log_logmanager_offlinelogdirectorycount", 0),
        ("kafka_server_kafkaserver_brokerstate", 3),
    ],
)
def test_gauges_of_dashboards_and_alerts_tell_the_state(
    samples: Samples, name: str, expected: int
) -> None:
    assert _one(samples, name) == expected


@pytest.mark.parametrize("partition", ["0", "1"])
@pytest.mark.parametrize("name", ["underminisr", "atminisr"])
def test_each_partition_tells_whether_it_is_in_sync(
    samples: Samples, name: str, partition: str
) -> None:
    value = _one(samples, f"kafka_cluster_partition_{name}", topic="metered", partition=partition)

    # One replica with min.insync.replicas 1 is exactly at the minimum.
    assert value == (1 if name == "atminisr" else 0)


def test_the_offsets_of_each_log_are_told(samples: Samples) -> None:
    labels = {"topic": "metered", "partition": "0"}

    assert _one(samples, "kafka_log_log_logstartoffset", **labels) == 0
    assert _one(samples, "kafka_log_log_logendoffset", **labels) == _BATCHES * _RECORDS_EACH


@pytest.mark.parametrize(
    "name",
    [
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    ],
)
def test_idle_percents_are_between_nothing_and_all(samples: Samples, name: str) -> None:
    assert 0 <= _one(samples, name) <= 1.1


@pytest.mark.parametrize("request_name", ["Produce", "Fetch", "FetchConsumer", "CreateTopics"])
@pytest.mark.parametrize("time", _TIMES)
def test_every_request_tells_its_six_times(samples: Samples, request_name: str, time: str) -> None:
    name = f"kafka_network_requestmetrics_{time}"
    quantiles = {
        dict(labels)["quantile"]: value
        for (sample, labels), value in samples.items()
        if sample == name and dict(labels).get("request") == request_name
    }

    assert _one(samples, f"{name}_count", request=request_name) > 0
    assert {"0.5", "0.99"} <= set(quantiles)
    assert all(0 <= value < 60_000 for value in quantiles.values())


def test_the_time_a_fetch_waits_is_remote(samples: Samples) -> None:
    total = _one(samples, "kafka_network_requestmetrics_remotetimems_sum", request="Fetch")

    assert total >= 25  # one fetch waited for 30 ms


def test_requests_and_errors_are_counted(samples: Samples) -> None:
    requests = "kafka_network_requestmetrics_requests_total"
    errors = "kafka_network_requestmetrics_errors_total"

    assert _one(samples, requests, request="Produce", version="11") == _BATCHES + 1
    assert _one(samples, errors, request="Produce", error="NONE") == _BATCHES
    assert _one(samples, errors, request="Fetch", error="OFFSET_OUT_OF_RANGE") == 1


def test_purgatories_tell_what_waits_in_them(samples: Samples) -> None:
    name = "kafka_server_delayedoperationpurgatory_purgatorysize"
    operations = {dict(labels)["delayedOperation"] for (n, labels) in samples if n == name}

    assert {"Produce", "Fetch"} <= operations


def test_connections_are_counted_by_listener_and_thread(metered_broker: Broker) -> None:
    name = "kafka_server_socket_server_metrics_connection_count"
    labels = {"listener": "PLAINTEXT", "networkProcessor": "0"}

    def connections() -> float:
        return _one(_samples(metered_broker.scrape()), name, **labels)

    before = connections()
    with metered_broker.client() as client:
        api.fetch(client, "metered")
        assert connections() == before + 1
    wait_until(lambda: connections() == before)
    samples = _samples(metered_broker.scrape())
    opened, closed = (
        _one(samples, f"kafka_server_socket_server_metrics_connection_{what}_total", **labels)
        for what in ("creation", "close")
    )
    assert opened - closed == before
    for what in ("creation", "close"):
        rate = f"kafka_server_socket_server_metrics_connection_{what}_rate"
        assert _one(samples, rate, **labels) > 0


def test_the_process_is_measured_too(samples: Samples) -> None:
    assert {"process_open_fds", "process_resident_memory_bytes", "process_cpu_seconds_total"} <= (
        _names(samples)
    )


def test_the_metrics_of_a_deleted_topic_go(metered_broker: Broker) -> None:
    with metered_broker.client() as client:
        topic = api.create_topic(client)
        api.produced(client, topic, records("a"))
        assert topic in metered_broker.scrape()

        api.delete_topic(client, topic)

    wait_until(lambda: f'topic="{topic}"' not in metered_broker.scrape())


# What Confluent's dashboards of clusters and topics ask of a single broker without ZooKeeper; the
# threads and the heap of a JVM are left out.
_CONFLUENT_DASHBOARDS = [
    "kafka_cluster_partition_underminisr",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "kafka_controller_kafkacontroller_globaltopiccount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
    "kafka_log_log_logendoffset",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_size",
    "kafka_network_acceptor_acceptorblockedpercent",
    "kafka_network_requestchannel_requestqueuesize",
    "kafka_network_requestchannel_responsequeuesize",
    "kafka_network_requestmetrics_errorspersec",
    "kafka_network_requestmetrics_localtimems",
    "kafka_network_requestmetrics_remotetimems",
    "kafka_network_requestmetrics_requestqueuetimems",
    "kafka_network_requestmetrics_requestspersec",
    "kafka_network_requestmetrics_responsequeuetimems",
    "kafka_network_requestmetrics_responsesendtimems",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_server_brokertopicmetrics_bytesinpersec",
    "kafka_server_brokertopicmetrics_bytesoutpersec",
    "kafka_server_brokertopicmetrics_fetchmessageconversionspersec",
    "kafka_server_brokertopicmetrics_messagesinpersec",
    "kafka_server_brokertopicmetrics_producemessageconversionspersec",
    "kafka_server_brokertopicmetrics_totalfetchrequestspersec",
    "kafka_server_brokertopicmetrics_totalproducerequestspersec",
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictionspersec",
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate",
    "kafka_server_kafkaserver_brokerstate",
    "kafka_server_replicamanager_isrexpandspersec",
    "kafka_server_replicamanager_isrshrinkspersec",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_socketservermetrics_connection_close_rate",
    "kafka_server_socketservermetrics_connection_count",
    "kafka_server_socketservermetrics_connection_creation_rate",
    "process_cpu_seconds_total",
]


def test_the_convention_of_confluent_can_be_chosen(make_broker: MakeBroker) -> None:
    broker = make_broker({"prometheus.port": "0", "metrics.naming": "confluent"})
    _traffic(broker, "metered")

    samples = _samples(broker.scrape())

    name = "kafka_server_brokertopicmetrics_messagesinpersec"
    assert _exactly(samples, name, topic="metered") == _BATCHES * _RECORDS_EACH
    assert set(_CONFLUENT_DASHBOARDS) - _names(samples) == set()
    assert not any(n.endswith("messagesin_total") for n in _names(samples))


def test_metrics_can_be_turned_off(broker: Broker) -> None:
    assert broker.properties["prometheus.port"] == "-1"
    assert broker.server.metrics_address is None


def test_a_free_port_is_taken_and_told(metered_broker: Broker) -> None:
    address = metered_broker.server.metrics_address

    assert address is not None
    assert int(address.rpartition(":")[2]) > 0
