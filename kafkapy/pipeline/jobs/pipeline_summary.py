"""What a pipeline would do, for people who ask before they start it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kafkapy.common.password import HIDDEN
from kafkapy.pipeline.jobs.output import Output
from kafkapy.pipeline.jobs.pipeline_config import (
    ConsoleSink,
    DeadLetterTopic,
    PipelineConfig,
    Sink,
    Source,
    TableFormat,
    TableSink,
    TextPayload,
    TopicSink,
    TopicSource,
)
from kafkapy.pipeline.kafka_client_options import PREFIX, SECRET_SETTINGS

# Settings whose values are nobody's business, by their names, beside those that Kafka hides.
_SECRET = re.compile(r"(?i)password|secret|jaas|token|credential|private|(?:access|api)[._]?key")
# A password in the middle of a value: of options for Java, of a URL. Paths may have such words.
_TELLS_SECRET = re.compile(
    r"(?i)(?:password|secret|token|credential)[\w.-]*\s*[=:]|://[^/\s]*:[^/\s]*@"
)
_SECRET_OPTIONS = frozenset(f"{PREFIX}{name}" for name in SECRET_SETTINGS)


def summary(config: PipelineConfig, outputs: Sequence[Output]) -> list[str]:
    return list(_lines(config, outputs))


def shown_options(options: Mapping[str, str]) -> str:
    """`name=value …`, with what may be a secret left out."""
    return " ".join(
        f"{name}={HIDDEN if _is_secret(name, value) else value}" for name, value in options.items()
    )


def _lines(config: PipelineConfig, outputs: Sequence[Output]) -> Iterator[str]:
    yield f"pipeline {config.name}: {config.trigger}, checkpoint {config.checkpoint}"
    if config.spark.conf:
        yield f"  spark {shown_options(config.spark.conf)}"
    for source in config.sources:
        yield f"source {source.name}: {_source(source)}"
        if source.options:
            yield f"  {shown_options(source.options)}"
    for step in config.steps:
        yield f"step {step.name}"
    by_name = {output.name: output for output in outputs}
    for sink in config.sinks:
        output = by_name.pop(sink.name)
        kind = f"stream, {output.output_mode.value}" if output.is_streaming else "batch"
        yield f"sink {sink.name}: {sink.source} to {_sink(sink)} ({kind}, {_guarantee(sink)})"
        yield f"  {', '.join(f'{name} {type_}' for name, type_ in output.frame.dtypes)}"
        if sink.options:
            yield f"  {shown_options(sink.options)}"
    for output in by_name.values():
        yield f"{output.name}: to {_dead_letters(config)}"


def _source(source: Source) -> str:
    match source:
        case TopicSource():
            what = source.topic_pattern or ",".join(source.topics)
            where = f"topic {what} at {source.bootstrap_servers} from {source.starting_offsets}"
        case _:
            kind = type(source).__name__.removesuffix("Source").lower()
            return f"{kind} {source.path}"
    payload = source.decoding.payload
    if isinstance(payload, TextPayload):
        return f"{where}, {payload.format}"
    return f"{where}, {type(payload).__name__.removesuffix('Payload').lower()}"


def _sink(sink: Sink) -> str:
    match sink:
        case TopicSink():
            topic = sink.topic or f"of column {sink.topic_column}"
            return f"topic {topic} at {sink.bootstrap_servers}"
        case TableSink():
            partitions = ", ".join(column.name for column in sink.partition_by)
            by = f" by {partitions}" if partitions else ""
            return f"{sink.format.value} {sink.path or sink.table}{by}"
        case ConsoleSink():
            return "the console"


def _guarantee(sink: Sink) -> str:
    match sink:
        case TopicSink():
            return "exactly once" if sink.exactly_once else "at least once"
        case TableSink():
            return "exactly once" if sink.format is TableFormat.PARQUET else "as its format does"
        case ConsoleSink():
            return "at least once"


def _dead_letters(config: PipelineConfig) -> str:
    target = config.dead_letters
    assert target is not None
    if isinstance(target, DeadLetterTopic):
        once = "exactly once" if target.exactly_once else "at least once"
        return f"topic {target.topic} at {target.bootstrap_servers} ({once})"
    return f"parquet {target.path} (exactly once)"


def _is_secret(name: str, value: str) -> bool:
    is_called_so = _SECRET.search(name) is not None or name.lower() in _SECRET_OPTIONS
    return is_called_so or _TELLS_SECRET.search(value) is not None
