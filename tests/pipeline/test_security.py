"""format("kafkapy") and pipelines at an Apache Kafka that wants TLS, SASL or both.

Here and not beside the clients' own tests of that: a second broker costs less than a second Spark.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafkapy.clients.admin import AdminClient, NewTopic
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.security.sasl.jaas_config import quoted
from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.jobs.job_runner import JobRunner
from kafkapy.pipeline.jobs.pipeline_config import PipelineConfig
from kafkapy.pipeline.jobs.progress.progress_log import ProgressLog
from kafkapy.pipeline.jobs.topic_directory import TopicDirectory
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.utils.stop_request import StopRequest
from kafkapy.utils.time import SystemTime
from tests.compat.secure_broker import SECRET, SecureBroker, login, start_secure_broker
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.pipelines import load
from tests.pipeline.pipeline_document import SECURITY, example
from tests.pipeline.test_progress import listening

MECHANISM = "SCRAM-SHA-512"
WRONG = "nonsense"
VALUES = [b"0", b"1", b"2"]
_SINK = """
[[sink]]
name = "copy"
from = "payments"
type = "topic"
topic = "{topic}"
value = "value"
exactly_once = true
bootstrap_servers = "{servers}"
options = {{ {options} }}
"""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    started = start_secure_broker(tmp_path_factory.mktemp("secure"))
    yield started
    started.broker.stop()


def mutual_tls(secure: SecureBroker) -> dict[str, str]:
    return _options(secure, "MUTUAL", {"security.protocol": "SSL", **secure.identity})


def scram(secure: SecureBroker, secret: str = SECRET) -> dict[str, str]:
    """A private key besides, as a text, which the broker does not ask for: it is to be hidden."""
    pem = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": secure.client.key.read_text(),
        "ssl.keystore.certificate.chain": secure.client.certificate.read_text(),
    }
    settings = {"security.protocol": "SASL_SSL", **login(MECHANISM, secret), **pem}
    return _options(secure, "SASL_SSL", settings)


def _options(secure: SecureBroker, listener: str, settings: Mapping[str, Any]) -> dict[str, str]:
    settings = {"bootstrap.servers": secure.address(listener), **secure.trust, **settings}
    return {f"kafka.{name}": value for name, value in settings.items()}


def new_topic(secure: SecureBroker, values: Sequence[bytes] = (), name: str | None = None) -> str:
    name = name or f"pipeline-{uuid4().hex[:12]}"
    servers = secure.address("PLAINTEXT")
    with AdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1)])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for value in values:
            producer.send(name, value)
    return name


def read(spark: SparkSession, options: Mapping[str, str], topic: str) -> DataFrame:
    reader = spark.read.format("kafkapy").schema("value binary").options(**options)
    return reader.options(**{"subscribe": topic, "kafka.isolation.level": "read_committed"}).load()


def write(spark: SparkSession, options: Mapping[str, str], topic: str, **more: str) -> None:
    frame = spark.range(0, len(VALUES), 1, 1).selectExpr("cast(id as string) as value")
    writer = frame.write.format("kafkapy").mode("append").options(**options)
    writer.options(topic=topic, **more).save()


def stream(spark: SparkSession, options: Mapping[str, str], topic: str) -> DataFrame:
    reader = spark.readStream.format("kafkapy").options(**options)
    return reader.options(subscribe=topic, startingOffsets="earliest").load().select("value")


def copy(frame: DataFrame, options: Mapping[str, str], topic: str, checkpoint: Path) -> None:
    """Once what there is; raises what ends the query."""
    writer = frame.writeStream.format("kafkapy").options(**options)
    writer = writer.options(topic=topic, exactlyOnce="true", checkpointLocation=str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def values_of(frame: DataFrame) -> list[bytes]:
    return sorted(bytes(row.value) for row in frame.collect())


def plans_of(spark: SparkSession) -> str:
    """Of all queries so far, as Spark's pages and its log of events show them."""
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [executions.apply(index) for index in range(executions.size())]
    return "\n".join(plan.physicalPlanDescription() for plan in plans)


def assert_hidden(secure: SecureBroker, text: str) -> None:
    # A line of the key; what stands before the password's first quote is the same in all forms.
    key = secure.client.key.read_text().splitlines()[1]
    for secret in (key, SECRET.partition('"')[0], WRONG):
        assert secret not in text


def assert_hidden_in_files(secure: SecureBroker, directory: Path) -> None:
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert files
    for file in files:
        assert_hidden(secure, file.read_text(errors="replace"))


@pytest.mark.parametrize("options_of", [mutual_tls, scram])
def test_batches_are_written_and_read(
    spark: SparkSession,
    secure: SecureBroker,
    capsys: pytest.CaptureFixture[str],
    options_of: Callable[[SecureBroker], dict[str, str]],
) -> None:
    options, topic = options_of(secure), new_topic(secure)

    write(spark, options, topic)
    frame = read(spark, options, topic)

    assert values_of(frame) == VALUES
    frame.explain(True)
    shown = capsys.readouterr().out + plans_of(spark)
    assert "BatchScan kafkapy" in shown
    # Spark 4.1 names the sink among the arguments.
    assert re.search(r"AppendData( |\n.*\nArguments: )kafkapy", shown)
    assert_hidden(secure, shown)


def test_stream_is_copied_exactly_once(
    spark: SparkSession, secure: SecureBroker, tmp_path: Path
) -> None:
    options, target = scram(secure), new_topic(secure)
    frame = stream(spark, options, new_topic(secure, VALUES))

    with listening(spark, ProgressLog(tmp_path / "progress.jsonl", SystemTime())):
        copy(frame, options, target, tmp_path / "checkpoint")

    await_ended_transactions(secure.address("PLAINTEXT"))
    assert values_of(read(spark, options, target)) == VALUES
    assert '"event":"progress"' in (tmp_path / "progress.jsonl").read_text()
    assert_hidden_in_files(secure, tmp_path)


def test_options_of_a_stream_are_shown_without_secrets(
    spark: SparkSession, secure: SecureBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = stream(spark, scram(secure), "topic")

    frame.explain(True)
    with pytest.raises(PySparkException) as refusal:
        frame.select("no_such_column")

    for shown in (capsys.readouterr().out, str(refusal.value)):
        assert f"kafka.sasl.mechanism={MECHANISM}" in shown
        assert "kafka.ssl.keystore.key=*********(redacted)" in shown
        assert_hidden(secure, shown)


def documented(secure: SecureBroker, text: str, directory: Path) -> str:
    """An example of the document, at this broker."""
    text = text.replace("kafka.example.com:9093", secure.address("SASL_SSL"))
    text = text.replace("/etc/kafka/ca.pem", str(secure.authority))
    return text.replace("/var/lib/payments", str(directory))


def pipeline(
    secure: SecureBroker, directory: Path, secret: str = SECRET, more: str = ""
) -> PipelineConfig:
    """The documented one, and more."""
    file = directory / "payments.toml"
    file.write_text(documented(secure, example(SECURITY, "toml"), directory) + more)
    return load(file, KAFKA_PASSWORD=quoted(secret)[1:-1])


def test_documented_examples_run(
    spark: SparkSession, secure: SecureBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_topic(secure, VALUES, name="payments")
    target, sink = new_topic(secure), mutual_tls(secure)
    servers = sink.pop("kafka.bootstrap.servers")
    options = ", ".join(f"{name} = '{value}'" for name, value in sink.items())
    config = pipeline(
        secure, tmp_path, more=_SINK.format(topic=target, servers=servers, options=options)
    )
    log = ProgressLog(tmp_path / "progress.jsonl", SystemTime())
    runner = JobRunner(config, spark, stop=StopRequest(), reporters=[log])

    TopicDirectory(config).check()
    told = "\n".join(runner.validate())
    runner.run()
    monkeypatch.setenv("KAFKA_PASSWORD", quoted(SECRET)[1:-1])
    names: dict[str, Any] = {"spark": spark}
    exec(documented(secure, example(SECURITY, "python"), tmp_path), names)

    await_ended_transactions(secure.address("PLAINTEXT"))
    assert values_of(names["payments"]) == VALUES
    assert values_of(spark.read.parquet(f"{tmp_path}/archive")) == VALUES
    assert values_of(read(spark, mutual_tls(secure), target)) == VALUES
    assert f"kafka.sasl.mechanism={MECHANISM} kafka.sasl.jaas.config=[hidden]" in told
    assert_hidden(secure, told)
    assert_hidden_in_files(secure, tmp_path)


def test_wrong_password_is_told(spark: SparkSession, secure: SecureBroker, tmp_path: Path) -> None:
    options, good, topic = scram(secure, WRONG), scram(secure), new_topic(secure, VALUES)
    address = secure.address("SASL_SSL")
    cause = f"Authentication at {address} by {MECHANISM} failed: "

    with pytest.raises(PySparkException) as reading:
        read(spark, options, topic).collect()
    with pytest.raises(PySparkException) as writing:
        write(spark, options, topic, exactlyOnce="true")
    with pytest.raises(PySparkException) as streaming:
        copy(stream(spark, options, topic), good, topic, tmp_path / "checkpoint")
    with pytest.raises(PipelineError) as running:
        TopicDirectory(pipeline(secure, tmp_path, WRONG)).check()

    for error in (reading, writing, streaming, running):
        assert cause in failure_cause(error.value)
        assert_hidden(secure, str(error.value))
    assert failure_cause(reading.value).startswith(f"the brokers at {address} ")
    assert failure_cause(writing.value).startswith("task 0: transaction ")
    place = f"{tmp_path}/payments.toml: [[source]] payments options"
    assert str(running.value).startswith(f"{place}: {cause}")


def test_missing_file_is_told_by_its_option(spark: SparkSession, secure: SecureBroker) -> None:
    option = "kafka.ssl.keystore.location"
    options = mutual_tls(secure) | {option: "/nowhere/client.pem"}

    with pytest.raises(PySparkException) as reading:
        read(spark, options, "topic").collect()
    with pytest.raises(PySparkException) as writing:
        write(spark, options, "topic")

    for error in (reading, writing):
        told = failure_cause(error.value)
        assert told == f"{option}: Invalid value /nowhere/client.pem: No such file or directory"
