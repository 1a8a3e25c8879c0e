"""The demonstrations of defects 11 to 20: each returns what it has seen of its defect, or nothing."""

import os
import socket
import threading
import time
from urllib.parse import urlencode

from scenarios.subtle_servers.demo_server import Answer, Bench, Server, block, lost, stored

NAME = "f1_0-1-0_001.parquet.marker.CREATE"


def long_name(place: Bench) -> str:
    server, directory = place.start(threads=1), place.directory()
    name = "p=" + "x" * 5000 + "/" + NAME
    first = server.create(directory, name)
    server.kill()
    server = place.start(threads=1)
    listed = server.names(directory)
    server.create(directory, "later" + NAME)
    gone = lost(directory, [name], [first])
    lengths = [len(other) for other in listed]
    return (
        f"a name of {len(name)} bytes is read as {lengths} after a restart, and not stored after a write"
        if gone
        else ""
    )


def early_answer(place: Bench) -> str:
    server, directory = place.start(interval_ms=300), place.directory()
    block(directory)
    names = [f"f{number}_0-1-0_001.parquet.marker.CREATE" for number in range(40)]
    gone = lost(directory, names, server.create_all([(directory, name) for name in names]))
    return f"{len(gone)} names were answered and are not stored" if gone else ""


def same_file(place: Bench) -> str:
    server, directory = place.start(threads=4), place.directory()
    for round_number in range(5):
        names = [f"f{round_number}-{number}_0-1-0_001.parquet.marker.CREATE" for number in range(40)]
        gone = lost(directory, names, server.create_all([(directory, name) for name in names]))
        if gone:
            return f"{len(gone)} names of round {round_number} were answered and are not stored"
    return ""


def other_table(place: Bench) -> str:
    server = place.start(interval_ms=200)
    directories = [place.directory(table="t1"), place.directory(table="t2")]
    answers = server.create_all([(directory, NAME) for directory in directories], gap_s=0.02)
    for directory, answer in zip(directories, answers, strict=True):
        if lost(directory, [NAME], [answer]):
            return f"{answer} for {NAME} in {directory.parts[-4]}, where it is not stored"
    return ""


def send_and_hang_up(server: Server, query: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"POST /v1/hoodie/marker/create?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(0.03)


def hang_up(place: Bench) -> str:
    server, directory = place.start(interval_ms=200), place.directory()
    query = urlencode({"markerdirpath": str(directory), "markername": NAME})
    leaving = threading.Thread(target=send_and_hang_up, args=(server, query))
    leaving.start()
    time.sleep(0.01)
    answer = server.create(directory, "other" + NAME, timeout=12)
    leaving.join()
    return (
        f"{answer}: a create in the batch of a client that hung up was not answered in 12 s"
        if not answer.status
        else ""
    )


def old_listing(place: Bench) -> str:
    server, directory = place.start(), place.directory()
    server.create(directory, "old" + NAME)
    server.names(directory)
    server.delete(directory)
    server.create(directory, "new" + NAME)
    listed = server.names(directory)
    return f"{listed} is listed, {stored(directory)} is stored" if set(listed) != stored(directory) else ""


def type_later(place: Bench) -> str:
    server = place.start(interval_ms=1)
    for number in range(200):
        directory = place.directory(f"{number:03}")
        asking = threading.Thread(target=server.create, args=(directory, NAME))
        asking.start()
        while not (directory / "MARKERS0").exists():
            pass
        if not (directory / "MARKERS.type").exists():
            server.kill()
            asking.join()
            left = sorted(os.listdir(directory))
            if "MARKERS.type" not in left:
                return f"{left} is what a kill left in {directory.name}"
            server = place.start(interval_ms=1)
        asking.join()
    return ""


def all_wait(place: Bench) -> str:
    server, broken, sound = place.start(threads=1), place.directory("001"), place.directory("002", table="u")
    block(broken)
    asking = threading.Thread(target=server.create, args=(broken, NAME), kwargs={"timeout": 3})
    asking.start()
    time.sleep(0.5)
    answer = server.create(sound, NAME, timeout=20)
    asking.join()
    return f"{answer}: no answer in 20 s while another directory cannot be written" if not answer.status else ""


def longer_instant(place: Bench) -> str:
    server, short, longer = place.start(), place.directory("20240101"), place.directory("20240101001")
    for directory in (short, longer):
        server.create(directory, NAME)
    answer: Answer = server.delete(short)
    return f"{answer} for {short.name}, and {longer.name} is gone" if not stored(longer) else ""


def one_file_more(place: Bench) -> str:
    server, directory = place.start(threads=2), place.directory()
    for number in range(2):
        server.create(directory, f"{number}{NAME}")
    server.kill()
    place.start(threads=2).create(directory, NAME)
    files = sorted(entry for entry in os.listdir(directory) if entry[7:].isdecimal())
    return f"2 threads, {files}" if len(files) > 2 else ""
