"""A correct class in twenty lines: not accused where it can run, not blamed where it cannot."""

from __future__ import annotations

from marker_sim.judges.profiles import load_profile
from marker_sim.markers.store import Context, Created, Rejected
from marker_sim.names import check_marker_name, data_path, is_append
from marker_sim.seams import Condition, PreconditionFailed
from marker_sim.search.campaign import run_simulated


class Tiny:
    """Direct markers by create-if-absent; errors of the storage pass through."""

    def __init__(self, context: Context) -> None:
        self.storage, self.directory = context.storage, context.directory

    def create(self, name: str) -> Created:
        try:
            check_marker_name(name)
            self.storage.put(f"{self.directory}/{name}", b"", Condition.IF_ABSENT)
        except PreconditionFailed:
            return Created.EXISTS
        except ValueError as error:
            if "marker name" in str(error):
                raise Rejected(str(error)) from error
            raise
        return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        return tuple(path[len(self.directory) + 1 :] for path in self.storage.list(self.directory + "/"))

    def list_data_paths(self) -> tuple[str, ...]:
        return tuple({data_path(name) for name in self.list_all() if not is_append(name)})

    def list_log_paths(self) -> tuple[str, ...]:
        return tuple({data_path(name) for name in self.list_all() if is_append(name)})

    def exists(self) -> bool:
        return bool(self.list_all())

    def delete(self) -> bool:
        paths = self.storage.list(self.directory + "/")
        for path in paths:
            self.storage.delete(path)
        return bool(paths)


def test_a_correct_class_is_not_accused_and_not_blamed_for_a_storage_it_cannot_use() -> None:
    campaign = run_simulated(
        sut=f"{__name__}:Tiny",
        modes=("direct",),
        storages=("s3", "local", "s3-unconditional"),
        budget_s=60.0,
        seed=0,
        guarantees=None,
        profile=load_profile("http"),
        progress=lambda line: None,
        runs_max=300,
    )
    assert campaign.failures == ()
    assert campaign.tally.runs >= 200
    assert [line for line in campaign.left_out if "s3-unconditional" in line]
