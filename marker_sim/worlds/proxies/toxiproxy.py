"""One toxiproxy server process and the wires through it, driven by its HTTP API.

Each call has a time-out; whatever it comes to besides success is HarnessError.

    client ──► wire.port ──[upstream toxics]──► upstream
           ◄──────────────[downstream toxics]──

What toxiproxy does, as read in its source (v2.12.0) and tried:
  - `reset_peer` resets connections made while it is on; older ones are closed.
  - `timeout` drops what it gets; taking it off closes the connections it was on.
  - a toxicity below 1 is drawn for each connection, not for each request.
  - an upstream that refuses is a client connection closed without a byte.
Limits: SIGKILL of the kit leaves the server behind. `cut` frees the port; `mend` waits for it when
another process uses it meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import psutil
import urllib3

from marker_sim.errors import HarnessError
from marker_sim.surroundings import supervisor
from marker_sim.worlds.proxies.install import HOW, find_server

Stream = Literal["upstream", "downstream"]
STARTUP_S = 10.0
CALL_S = 10.0
PORT_BACK_S = 3.0
POLL_S = 0.01
END_S = 5.0


class Toxiproxy:
    """A toxiproxy server on 127.0.0.1, for the duration of a context; its wires and toxics end with it. Thread-safe."""

    def __init__(self, program: Path | None = None) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._port: int | None = None

    def __enter__(self) -> Toxiproxy:
        program = self._program or find_server()
        if program is None:
            raise HarnessError(f"wires need the toxiproxy server, which is not here; {HOW}")
        self._log = tempfile.TemporaryFile()
        try:
            words = [str(program), "-host", "127.0.0.1", "-port", "0"]
            self._process = supervisor.start(words, {"LOG_LEVEL": "error"}, stdout=self._log)
            self._await()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the server, which leads a process group."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def proxy(self, name: str, upstream_port: int) -> ProxiedWire:
        """A new wire from a fresh port on 127.0.0.1 to another port, where nothing needs to listen yet."""
        given = {"name": name, "listen": "127.0.0.1:0", "upstream": f"127.0.0.1:{upstream_port}"}
        made = self.call("POST", "/proxies", given)
        return ProxiedWire(self, name, int(made["listen"].rpartition(":")[2]))

    def close(self) -> None:
        """Kill the server and wait for it; may be called again."""
        process, self._process = self._process, None
        if process is not None:
            supervisor.end(process)
        if self._log is not None:
            self._log.close()
            self._log = None

    def call(self, method: str, path: str, given: Mapping[str, Any] | None = None) -> Any:
        """The answer to one call of the server's API, None for an empty one; HarnessError for every error."""
        url = f"http://127.0.0.1:{self._port}{path}"
        try:
            reply = urllib3.request(method, url, json=given, timeout=CALL_S, retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise HarnessError(f"toxiproxy did not answer {method} {path}: {error}; {self._last_output()}") from error
        if reply.status >= 400:
            said = reply.data.decode("utf-8", "replace").strip()[:200]
            raise HarnessError(f"toxiproxy refused {method} {path}: {reply.status} {said}")
        return json.loads(reply.data) if reply.data else None

    def _await(self) -> None:
        """Read the port that the kernel chose, and wait until the API answers there."""
        assert self._process is not None
        deadline = time.monotonic() + STARTUP_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise HarnessError(f"toxiproxy ended with {self._process.returncode} at once; {self._last_output()}")
            self._port = _listens_at(self._process.pid)
            if self._port is not None:
                self.call("GET", "/proxies")
                return
            time.sleep(POLL_S)
        raise HarnessError(f"toxiproxy did not listen within {STARTUP_S:.0f} s; {self._last_output()}")

    def _last_output(self) -> str:
        if self._log is None:
            return "it is closed"
        said = supervisor.last_lines(Path(f"/proc/self/fd/{self._log.fileno()}"))
        return f"it said: {said}"


@dataclass(eq=False)
class ProxiedWire:
    """A port that forwards to another one. Made by `Toxiproxy.proxy`."""

    toxiproxy: Toxiproxy
    name: str
    port: int
    _made: int = 0

    def cut(self) -> None:
        """Close the port and every connection of the wire."""
        self._set(enabled=False)

    def mend(self) -> None:
        """Open the port again."""
        deadline = time.monotonic() + PORT_BACK_S
        while True:
            try:
                return self._set(enabled=True)
            except HarnessError as error:
                if "address already in use" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(POLL_S)  # An outgoing connection may use the port for a moment.

    def sever(self) -> None:
        """End every present connection; new ones are accepted at once."""
        self.cut()
        self.mend()

    @contextmanager
    def toxic(self, kind: str, stream: Stream, toxicity: float, **attributes: int) -> Iterator[None]:
        """A context in which a toxic is active. toxicity: the share of connections that it affects.

        attributes: toxiproxy's, which ignores those that it does not know.
        """
        self._made += 1
        given = {"type": kind, "name": f"{kind}-{self._made}", "stream": stream, "toxicity": toxicity}
        self.toxiproxy.call("POST", f"/proxies/{self.name}/toxics", {**given, "attributes": attributes})
        try:
            yield
        finally:
            self.toxiproxy.call("DELETE", f"/proxies/{self.name}/toxics/{given['name']}")

    def _set(self, **given: Any) -> None:
        self.toxiproxy.call("POST", f"/proxies/{self.name}", given)


def _listens_at(pid: int) -> int | None:
    """The port on 127.0.0.1 at which a process listens, None while there is none."""
    try:
        found = psutil.Process(pid).net_connections(kind="tcp4")
    except psutil.Error:
        return None
    return next((row.laddr.port for row in found if row.status == psutil.CONN_LISTEN), None)
