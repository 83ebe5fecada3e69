"""Compaction against a model: any mixture of writes, transactions, rounds and restarts."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.storage.log_cleaner_manager import cleanable_offsets
from kafkapy.storage.log_to_clean import LogToClean
from kafkapy.storage.unified_log import UnifiedLog
from tests.unit.storage.cleaning import (
    DELETE_RETENTION_MS,
    TransactionalProducer,
    compacted_log,
    new_cleaner,
    put,
    read_committed,
)
from tests.unit.storage.harness import StorageHarness, read_all

PRODUCERS = (1, 2)
Pair = tuple[str, str | None]


@dataclass(frozen=True)
class Write:
    pairs: list[Pair]
    codec: CompressionType
    producer_id: int | None  # of a transaction


@dataclass(frozen=True)
class End:
    producer_id: int
    commit: bool


@dataclass(frozen=True)
class Clean:
    slots: int


@dataclass(frozen=True)
class Restart:
    clean: bool


@dataclass(frozen=True)
class Roll:
    pass


@dataclass(frozen=True)
class Wait:
    pass


PAIRS = st.tuples(
    st.sampled_from("abcde"), st.one_of(st.none(), st.text("xyz", min_size=1, max_size=30))
)
WRITES = st.builds(
    Write,
    st.lists(PAIRS, min_size=1, max_size=5),
    st.sampled_from([CompressionType.NONE, CompressionType.NONE, CompressionType.LZ4]),
    st.sampled_from([None, None, *PRODUCERS]),
)
STEPS = st.one_of(
    WRITES,
    WRITES,
    WRITES,
    st.builds(End, st.sampled_from(PRODUCERS), st.booleans()),
    st.builds(Roll),
    st.builds(Clean, st.sampled_from([4, 1000, 1000])),
    st.builds(Wait),
    st.builds(Restart, st.booleans()),
)


@dataclass
class Model:
    """A log, and what was written to it."""

    storage: StorageHarness
    log: UnifiedLog
    producers: dict[int, TransactionalProducer] = field(default_factory=dict)
    written: dict[int, Pair] = field(default_factory=dict)  # by offset
    open: dict[int, list[int]] = field(default_factory=dict)  # offsets by producer
    aborted: set[int] = field(default_factory=set)
    clean_up_to: int = 0

    def run(self, step: object) -> None:
        match step:
            case Write(pairs, codec, producer_id):
                self.write(pairs, codec, producer_id)
            case End(producer_id, commit):
                self.end(producer_id, commit=commit)
            case Clean(slots):
                self.clean(slots)
            case Restart(clean):
                self.restart(clean=clean)
            case Roll():
                if self.log.active_segment.size:
                    self.log.roll()
            case Wait():
                self.storage.time.sleep(DELETE_RETENTION_MS)

    def write(self, pairs: list[Pair], codec: CompressionType, producer_id: int | None) -> None:
        compression = Compression(codec)
        if producer_id is None:
            first = put(self.log, self.storage.time, *pairs, compression=compression)
        else:
            first = self.producer(producer_id).put(*pairs, compression=compression)
            self.open.setdefault(producer_id, []).extend(range(first, first + len(pairs)))
        self.written.update(enumerate(pairs, first))
        self.log.update_high_watermark(self.log.log_end_offset)

    def producer(self, producer_id: int) -> TransactionalProducer:
        found = self.producers.get(producer_id)
        if found is None:
            found = TransactionalProducer(self.log, self.storage.time, producer_id)
            self.producers[producer_id] = found
        return found

    def end(self, producer_id: int, *, commit: bool) -> None:
        offsets = self.open.pop(producer_id, [])
        if not commit:
            self.aborted.update(offsets)
        self.producer(producer_id).end(commit=commit)

    def clean(self, slots: int) -> None:
        log, time = self.log, self.storage.time
        offsets = cleanable_offsets(log, self.clean_up_to, time.milliseconds())
        assert not offsets.force_update_checkpoint
        cleanable = LogToClean.measure(
            log, offsets.first_dirty_offset, offsets.first_uncleanable_dirty_offset
        )
        if not cleanable.cleanable_bytes:
            return
        end, _ = new_cleaner(time, slots=slots, load_factor=1).clean(cleanable)
        assert self.clean_up_to < end <= cleanable.first_uncleanable_offset
        self.clean_up_to = end

    def restart(self, *, clean: bool) -> None:
        log = self.log
        log.flush()
        if clean:
            log.close()
        self.log = self.storage.open_log(
            log.config, clean=clean, recovery_point=log.log_end_offset if clean else 0
        )
        assert self.log.log_end_offset == log.log_end_offset
        self.log.update_high_watermark(self.log.log_end_offset)
        for producer in self.producers.values():
            producer.log = self.log

    def check(self) -> None:
        """Everything that is there was written; what is not, may be missing."""
        stored = read_all(self.log)
        offsets = [record.offset for record in stored]
        assert offsets == sorted(set(offsets))
        assert not [o for o in offsets if o in self.aborted and o < self.clean_up_to]

        unstable = {offset for offsets in self.open.values() for offset in offsets}
        visible = {
            offset: pair
            for offset, pair in self.written.items()
            if offset < self.log.last_stable_offset
            and offset not in self.aborted
            and offset not in unstable
        }
        read = read_committed(self.log)
        found = {
            r.offset: ((r.key or b"").decode(), None if r.value is None else r.value.decode())
            for r in read
        }
        assert found.items() <= visible.items()
        last_clean = {
            key: offset for offset, (key, _) in sorted(visible.items()) if offset < self.clean_up_to
        }
        for offset, (key, value) in visible.items():
            if offset < self.clean_up_to and last_clean[key] > offset:
                assert offset not in found
            elif offset >= self.clean_up_to or value is not None:
                assert offset in found


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=40))
def test_every_mixture_keeps_the_last_committed_value_of_each_key(steps: list[object]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        storage = StorageHarness(Path(directory))
        model = Model(storage, compacted_log(storage, segment_bytes=600, index_interval_bytes=100))
        for step in [*steps, *(End(producer_id, True) for producer_id in PRODUCERS)]:
            model.run(step)
            if isinstance(step, Clean | Restart):
                model.check()
        model.run(Roll())
        model.run(Clean(1000))
        model.check()
        model.run(Restart(clean=False))
        model.check()
        model.log.close()
