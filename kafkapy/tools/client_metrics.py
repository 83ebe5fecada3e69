"""The metrics of a client at the end of a run."""

from collections.abc import Mapping

_TITLES = ("Metric Name", "Value")


def print_metrics(metrics: Mapping[str, Mapping[str, float]], client_id: str) -> None:
    """By name, each on a line of its own.

    Ports: org.apache.kafka.tools.ToolsUtils
    """
    shown = {
        f"{group}:{name}:{{client-id={client_id}}}": value
        for group, values in metrics.items()
        for name, value in values.items()
    }
    width = max(map(len, shown), default=0)
    print(f"\n{_TITLES[0]:<{width}} {_TITLES[1]}")
    for name, value in sorted(shown.items()):
        print(f"{name:<{width}} : {value:.3f}")
