"""marker-sim decides, with evidence, whether an implementation of Apache Hudi markers is correct.

A plan determines a run, a run leaves a history, judges turn histories into verdicts. See docs/architecture.md.

`import marker_sim` has the public names of docs/python.md. Each is imported when it is first used, so that the import
itself takes no time; their types are in __init__.pyi.
"""

__version__ = "0.1.0"
_MODULES = {
    "marker_sim.interface.calls": ("judge", "replay", "verify"),
    "marker_sim.interface.verdict": ("Defect", "Verdict"),
    "marker_sim.campaign.machines.machine": ("attack", "machine_for"),
    "marker_sim.campaign.machines.operations": ("MarkerMachine",),
    "marker_sim.campaign.machines.rules": ("WritePathMachine",),
    "marker_sim.loading": ("load_system",),
    "marker_sim.system": ("System",),
    "marker_sim.plan": ("Plan", "read_plan"),
    "marker_sim.errors": ("HarnessError", "UsageError"),
    "marker_sim.markers.store": ("Context", "Created", "MarkerStore", "Rejected"),
    "marker_sim.names": ("check_marker_name", "data_path", "is_append"),
    "marker_sim.seams": (
        "Capabilities",
        "Condition",
        "Conflicted",
        "Content",
        "DiskFull",
        "Mailbox",
        "NoAnswer",
        "NotFound",
        "PathRefused",
        "PreconditionFailed",
        "Refused",
        "Reply",
        "Request",
        "Runtime",
        "SeamError",
        "Storage",
        "StorageError",
        "StorageFailed",
        "StorageTimeout",
        "Throttled",
        "Unsupported",
        "Wire",
        "WireError",
    ),
}
__all__ = [name for names in _MODULES.values() for name in names]


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'marker_sim' has no attribute {name!r}; it has {', '.join(sorted(__all__))}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
