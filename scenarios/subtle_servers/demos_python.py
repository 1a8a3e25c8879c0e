"""The demonstrations of defects 1 to 10: each returns what it has seen of its defect, or nothing."""

import http.client
import threading
import time
from pathlib import Path

from scenarios.subtle_servers.demo_server import Answer, Bench, Server, ask_over, block, lost, stored


def normal_forms(place: Bench) -> str:
    server, directory = place.start(), place.directory()
    names = ["città=1/f1_0-1-0_001.parquet.marker.CREATE", "citta\u0300=1/f1_0-1-0_001.parquet.marker.CREATE"]
    gone = lost(directory, names, [server.create(directory, name) for name in names])
    return f"answered and not stored: {gone!a}" if gone else ""


def eleventh_file(place: Bench) -> str:
    server, directory = place.start(interval_ms=5), place.directory()
    names = [f"f{number}_0-1-0_001.parquet.marker.CREATE" for number in range(13)]
    for name in names:
        server.create(directory, name)
    server.kill()
    server = place.start(interval_ms=5)
    missing = sorted(set(names) - set(server.names(directory)))
    again = [name for name in names if server.create(directory, name).value is True]
    return f"not listed after a restart: {missing}, created again: {again}" if missing or again else ""


def two_creators(place: Bench) -> str:
    server, directory = place.start(interval_ms=1), place.directory()
    for round_number in range(60):
        name = f"f{round_number}_0-1-0_001.parquet.marker.CREATE"
        answers = server.create_all([(directory, name)] * 12, gap_s=0.0005)
        creators = sum(answer.value is True for answer in answers)
        if creators > 1:
            return f"{creators} requests in round {round_number} were told to have created {name}"
    return ""


def same_sizes(place: Bench) -> str:
    first, second, directory = place.start(), place.start(), place.directory()
    old, new = "f1_0-1-0_001.parquet.marker.CREATE", "f2_0-1-0_001.parquet.marker.CREATE"
    first.create(directory, old)
    second.delete(directory)
    second.create(directory, new)
    answer = first.create(directory, old)
    return f"{answer} for {old}, stored are {stored(directory)}" if old not in stored(directory) else ""


def full_disk(place: Bench) -> str:
    server, directory = place.start(threads=1, interval_ms=5, file_limit=1), place.directory()
    names = [f"p=1/f{number:02}_0-1-0_001.parquet.marker.CREATE" for number in range(30)]
    gone = lost(directory, names, [server.create(directory, name) for name in names])
    return f"answered and not stored: {gone}" if gone else ""


def early_duplicate(place: Bench) -> str:
    server, directory = place.start(), place.directory()
    block(directory)
    name = "f1_0-1-0_001.parquet.marker.CREATE"
    answers = server.create_all([(directory, name)] * 2)
    gone = lost(directory, [name] * 2, answers)
    return f"answers {answers}, nothing is stored" if gone else ""


def delete_during_create(server: Server, directory: Path, round_number: int) -> Answer:
    """The answer to a deletion that begins a little after a create."""
    answers: list[Answer] = []
    delay_s = 0.002 + round_number % 10 / 1000
    deleting = threading.Timer(delay_s, lambda: answers.append(server.delete(directory)))
    deleting.start()
    server.create(directory, f"new{round_number}_0-1-0_001.parquet.marker.CREATE")
    deleting.join()
    return answers[0]


def comes_back(place: Bench) -> str:
    server, directory = place.start(threads=1, interval_ms=1), place.directory()
    old = "old_0-1-0_001.parquet.marker.CREATE"
    for round_number in range(150):
        server.create(directory, old)
        deleted = delete_during_create(server, directory, round_number)
        if deleted == Answer(200, True) and old in stored(directory):
            return f"{old} is stored after its deletion in round {round_number}; all creates of it ended before"
    return ""


def log_names(place: Bench) -> str:
    server, directory = place.start(), place.directory()
    base, log = "f1_0-1-0_001.parquet.marker.APPEND", ".f2_001.log.1_0-1-0.marker.CREATE"
    server.create(directory, base)
    server.create(directory, log)
    appended, others = server.names(directory, "append"), server.names(directory, "create-and-merge")
    return f"/append: {appended}, /create-and-merge: {others}" if (appended, others) != ([base], [log]) else ""


def too_late(place: Bench) -> str:
    server, directory = place.start(interval_ms=300), place.directory()
    block(directory)
    name = "f1_0-1-0_001.parquet.marker.CREATE"
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(server.create(directory, name)))
    asking.start()
    time.sleep(0.1)
    server.pause(1.5)
    asking.join()
    return f"{answers} after a pause, nothing is stored" if lost(directory, [name], answers) else ""


def left_from_before(place: Bench) -> str:
    server, directory = place.start(), place.directory()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    first = ask_over(connection, "POST", "create", directory, markername="f1_0-1-0_001.parquet.marker.CREATE")
    second = ask_over(connection, "POST", "create", directory, markername="")
    connection.close()
    return f"an empty name got {second} after {first} on the same connection" if second.decided else ""
