"""The file that declares a pipeline: TOML, with ${NAME} for variables of the environment."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from kafkapy.pipeline.jobs.pipeline_config import (
    DEAD_LETTERS,
    STARTING,
    PipelineConfig,
    TableSink,
)
from kafkapy.pipeline.jobs.pipeline_tables import (
    dead_letters_of,
    spark_of,
    step_of,
    trigger_of,
)
from kafkapy.pipeline.jobs.sink_tables import sink_of
from kafkapy.pipeline.jobs.source_tables import source_of
from kafkapy.pipeline.jobs.toml_table import TomlTable
from kafkapy.pipeline.pipeline_errors import OptionError, PipelineError

DEFAULT_STOP_TIMEOUT_S = 10
NO_METRICS = -1
_LAST_PORT = 65_535
_VARIABLE = re.compile(r"\$(\$)?\{([^}]*)\}")
# A step or a source is a table in SQL; a sink is a directory below the checkpoint.
_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SINK_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class PipelineFile:
    """Reads a file into a PipelineConfig, or says in one line what is wrong with it. For one
    thread.
    """

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        # constant after construction
        self._path = path
        self._environment = environment

    def load(self) -> PipelineConfig:
        read = self._read()
        document = TomlTable(f"{self._path}:", read)
        pipeline = document.table("pipeline")
        if pipeline is None:
            raise document.error("[pipeline]", "is missing")
        pipeline.named(f"{self._path}: [pipeline]")
        servers = pipeline.optional_text("bootstrap_servers")
        folder = self._path.parent
        config = PipelineConfig(
            file=str(self._path),
            name=pipeline.text("name"),
            checkpoint=pipeline.text("checkpoint").rstrip("/"),
            trigger=trigger_of(pipeline),
            stop_timeout_s=pipeline.number(
                "stop_timeout_seconds", default=DEFAULT_STOP_TIMEOUT_S, at_least=0
            ),
            metrics_port=pipeline.number(
                "metrics_port", default=NO_METRICS, at_least=NO_METRICS, at_most=_LAST_PORT
            ),
            progress_log=pipeline.optional_text("progress_log"),
            spark=spark_of(self._table(document, "spark")),
            sources=tuple(
                source_of(table, bootstrap_servers=servers, folder=folder)
                for table in self._tables(read, "source")
            ),
            steps=tuple(step_of(table) for table in self._tables(read, "step")),
            sinks=tuple(
                sink_of(table, bootstrap_servers=servers) for table in self._tables(read, "sink")
            ),
            dead_letters=dead_letters_of(
                self._table(document, "dead_letters"), bootstrap_servers=servers
            ),
        )
        pipeline.refuse_others()
        for key in ("source", "step", "sink"):
            document.has(key)
        document.refuse_others()
        self._check(config)
        return config

    def _read(self) -> dict[str, object]:
        try:
            read = tomllib.loads(self._path.read_text(encoding="utf-8"))
        except OSError as e:
            raise PipelineError(f"{self._path}: {e.strerror}") from e
        except UnicodeDecodeError as e:
            raise PipelineError(f"{self._path}: not UTF-8 at byte {e.start}") from e
        except tomllib.TOMLDecodeError as e:
            raise PipelineError(f"{self._path}: {e}") from e
        return {key: self._expanded(value, key) for key, value in read.items()}

    def _expanded(self, value: object, place: str) -> object:
        if isinstance(value, dict):
            return {key: self._expanded(v, f"{place}.{key}") for key, v in value.items()}
        if isinstance(value, list):
            return [self._expanded(v, f"{place}[{n}]") for n, v in enumerate(value)]
        if not isinstance(value, str):
            return value

        def replaced(match: re.Match[str]) -> str:
            if match[1]:
                return f"${{{match[2]}}}"
            if match[2] not in self._environment:
                reason = f"the environment has no variable {match[2]} (a literal ${{ is $${{)"
                raise OptionError(f"{self._path}: {place}", reason)
            return self._environment[match[2]]

        return _VARIABLE.sub(replaced, value)

    def _table(self, document: TomlTable, key: str) -> TomlTable | None:
        table = document.table(key)
        if table is not None:
            table.named(f"{self._path}: [{key}]")
        return table

    def _tables(self, read: Mapping[str, object], key: str) -> list[TomlTable]:
        """The tables `[[key]]`, each called by its name in messages."""
        values = read.get(key, [])
        place = f"{self._path}: [[{key}]]"
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise OptionError(place, "expected double brackets: an array of tables")
        tables = []
        for number, value in enumerate(values, start=1):
            table = TomlTable(f"{place} number {number}", value)
            name = table.text("name")
            pattern = _SINK_NAME if key == "sink" else _TABLE_NAME
            if not pattern.fullmatch(name):
                reason = f"{name!r} is no name: letters, digits and _, no digit first"
                raise table.error("name", reason)
            table.named(f"{place} {name}")
            tables.append(table)
        return tables

    def _check(self, config: PipelineConfig) -> None:
        """What no table can know alone."""
        if not config.sources:
            raise OptionError(f"{self._path}: [[source]]", "there is none")
        if not config.sinks:
            raise OptionError(f"{self._path}: [[sink]]", "there is none")
        tables = [source.name for source in config.sources] + [step.name for step in config.steps]
        self._check_unique("source, step", tables)
        self._check_unique("sink", [sink.name for sink in config.sinks])
        # Spark keeps a list of a stream's files beside them: two streams would break it.
        paths = [s.path for s in config.sinks if isinstance(s, TableSink) and s.path is not None]
        self._check_unique("sink path", paths)
        for sink in config.sinks:
            if sink.name.startswith(DEAD_LETTERS) or sink.name == STARTING:
                reason = "means something else in the checkpoint: take another"
                raise config.error("sink", sink.name, "name", reason)
            if sink.source not in tables:
                known = ", ".join(tables)
                reason = f"there is no source or step {sink.source!r}; there are {known}"
                raise config.error("sink", sink.name, "from", reason)

    def _check_unique(self, what: str, names: list[str]) -> None:
        # Tables in SQL have no case, and neither have the directories of some systems.
        for name, count in Counter(name.lower() for name in names).items():
            if count > 1:
                raise PipelineError(f"{self._path}: {what} {name!r} is there {count} times")
