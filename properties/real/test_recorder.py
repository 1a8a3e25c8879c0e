"""What a run asks of the history in the making."""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest

from marker_sim.names import MarkerDirectory
from properties.faces.surroundings import StartedProgram
from properties.faces.worlds import HttpConnection, Recorder, Requests, Server, lease_port

PLACE = MarkerDirectory("t", "001")


def test_nobody_waits_for_the_answer_to_a_client_that_was_killed() -> None:
    recorder = Recorder()
    recorder.record("driver", "client", "invoke", "delete", *PLACE)
    recorder.record("executor-1", "client", "invoke", "create", *PLACE, "a.marker.CREATE")
    assert recorder.open_since(recorder.now_ns()) == 2
    recorder.fault("driver", "kill")
    assert recorder.open_since(recorder.now_ns()) == 1
    recorder.record("driver.1", "client", "invoke", "list", *PLACE)
    assert recorder.open_since(recorder.now_ns()) == 2, "the client that goes on as another process"
    assert recorder.answered(PLACE) == frozenset(), "what the dead client asked for may still be done"


def test_what_a_client_would_ask_when_the_run_is_over_is_neither_sent_nor_in_the_history() -> None:
    with (
        socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as nobody,
        subprocess.Popen([sys.executable, "-c", ""]) as process,
    ):
        port = int(nobody.server_address[1])
        server = Server("server-1", port, StartedProgram(process), Path())
        recorder = Recorder()
        requests = Requests(recorder, lambda place: place.path, False)
        asked = ("executor-1", server, "create", PLACE, "a.marker.CREATE", HttpConnection(port, timeout_s=0.2))
        assert requests.send(*asked, over=lambda: True) is None and recorder.events == []
        ended = requests.send(*asked, over=lambda: False)
        assert ended is not None and [event.kind for event in recorder.events] == ["invoke", "observe", "info"]


@pytest.mark.skipif(sys.platform != "linux", reason="ports are leased by abstract names, which Linux has")
def test_a_port_that_one_server_will_have_is_given_to_no_other_before_it_is_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, lease = lease_port()
    drawn = chain([port, port], count(port + 1))
    real = socket.socket.getsockname

    class Probe(socket.socket):
        def getsockname(self) -> Any:
            return ("127.0.0.1", next(drawn)) if self.family == socket.AF_INET else real(self)

    monkeypatch.setattr(socket, "socket", Probe)
    other, more = lease_port()
    assert other > port, "the kernel gave the first one twice more, for no server has bound it yet"
    lease.close()
    drawn = chain([port], count(port + 1))
    again, third = lease_port()
    assert again == port
    more.close()
    third.close()
