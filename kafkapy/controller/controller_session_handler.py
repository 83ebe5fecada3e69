from kafkapy.controller.controller_event_manager import ControllerEventManager
from kafkapy.controller.controller_events import Expire, RegisterBrokerAndReelect
from kafkapy.zk.metadata_store import StateChangeHandler


class ControllerSessionHandler(StateChangeHandler):
    """A lost session takes the controllership and the broker's registration with it.

    Runs on the store's event thread.

    Ports: kafka.controller.KafkaController (its StateChangeHandler)
    """

    name = "controller-state-change-handler"

    def __init__(self, event_manager: ControllerEventManager) -> None:
        self._event_manager = event_manager

    def before_initializing_session(self) -> None:
        # What waits was put under the old session. The next one must not begin before the event
        # in progress has ended, or it would write under the new session what the old one decided.
        self._event_manager.clear_and_put(Expire()).await_processing()

    def after_initializing_session(self) -> None:
        self._event_manager.put(RegisterBrokerAndReelect())
