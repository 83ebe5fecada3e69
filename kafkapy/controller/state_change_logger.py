from logging import Logger, LoggerAdapter

from kafkapy.utils.log_context import LogContext

STATE_CHANGE_LOGGER = "kafkapy.state_change"


class StateChangeLogger:
    """The log of state changes: which partition or replica went where, and what was sent for it.

    It all goes to one logger, so that it can be kept in a file of its own. Belongs to one thread.

    Ports: kafka.controller.StateChangeLogger
    """

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id  # constant after construction
        self._epoch: int | None = None
        self._log = self._with_prefix("")

    def with_controller_epoch(self, epoch: int) -> LoggerAdapter[Logger]:
        # Kept from call to call: a change may concern thousands of partitions.
        if epoch != self._epoch:
            self._epoch = epoch
            self._log = self._with_prefix(f" epoch={epoch}")
        return self._log

    def _with_prefix(self, epoch: str) -> LoggerAdapter[Logger]:
        return LogContext(f"[Controller id={self._broker_id}{epoch}] ").logger(STATE_CHANGE_LOGGER)
