"""Opening a log: the parts, loaded and put together."""

from uuid import UUID

from kafkapy.storage.leader_epoch_file_cache import open_leader_epoch_cache
from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_file_utils import parse_topic_partition_name
from kafkapy.storage.log_loader import LogLoader
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.unified_log import UnifiedLog


def open_log(
    directory: str,
    config: LogConfig,
    environment: StorageEnvironment,
    *,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    had_clean_shutdown: bool = True,
    topic_id: UUID | None = None,
    producer_state_config: ProducerStateManagerConfig,
) -> UnifiedLog:
    """The log in a directory, made if the directory is new and empty; raises OSError.

    Ports: kafka.log.UnifiedLog.apply
    """
    topic_partition = parse_topic_partition_name(directory)
    segments = LogSegments(topic_partition)
    leader_epoch_cache = open_leader_epoch_cache(directory, topic_partition, environment)
    producer_state_manager = ProducerStateManager(
        topic_partition,
        directory,
        config=producer_state_config,
        file_system=environment.file_system,
    )
    loaded = LogLoader(
        directory,
        topic_partition,
        config,
        environment=environment,
        had_clean_shutdown=had_clean_shutdown,
        segments=segments,
        log_start_offset_checkpoint=log_start_offset,
        recovery_point_checkpoint=recovery_point,
        leader_epoch_cache=leader_epoch_cache,
        producer_state_manager=producer_state_manager,
    ).load()
    local_log = LocalLog(
        directory,
        config,
        segments,
        recovery_point=loaded.recovery_point,
        next_offset_metadata=loaded.next_offset_metadata,
        topic_partition=topic_partition,
        environment=environment,
    )
    return UnifiedLog(
        local_log,
        log_start_offset=loaded.log_start_offset,
        leader_epoch_cache=leader_epoch_cache,
        producer_state_manager=producer_state_manager,
        topic_id=topic_id,
        environment=environment,
        producer_id_expiration_check_interval_ms=producer_state_config.check_interval_ms,
    )
