"""What is done when records are gone that should have been read."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kafkapy.pipeline.pipeline_errors import DataLossError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DataLossReporter:
    """Raises DataLossError, or warns and lets the reading go on, as failOnDataLoss says."""

    fail_on_data_loss: bool

    def report(self, what: str) -> None:
        if self.fail_on_data_loss:
            raise DataLossError(
                f"{what}. Some records may have been missed; with failOnDataLoss=false the query "
                "goes on without them"
            )
        logger.warning("%s. Some records may have been missed (failOnDataLoss=false)", what)
