"""What a run asks of the history in the making."""

from __future__ import annotations

from marker_sim.names import MarkerDirectory
from marker_sim.worlds.recorder import Recorder

PLACE = MarkerDirectory("t", "001")


def test_nobody_waits_for_the_answer_to_a_client_that_was_killed() -> None:
    recorder = Recorder()
    recorder.record("driver", "client", "invoke", "delete", PLACE)
    recorder.record("executor-1", "client", "invoke", "create", PLACE, "a.marker.CREATE")
    assert recorder.open_since(recorder.now_ns()) == 2
    recorder.fault("driver", "kill")
    assert recorder.open_since(recorder.now_ns()) == 1
    recorder.record("driver.1", "client", "invoke", "list", PLACE)
    assert recorder.open_since(recorder.now_ns()) == 2, "the client that goes on as another process"
    assert recorder.answered(PLACE) == frozenset(), "what the dead client asked for may still be done"
