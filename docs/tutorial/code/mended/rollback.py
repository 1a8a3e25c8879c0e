"""Markers, one object each, and the rollback of a write: a program for `marker-sim verify --sut command`."""

import base64
import re

from program import Call, Line, serve, steadily

MARKER = re.compile(r"(.*[^/])\.marker\.(CREATE|MERGE|APPEND)", re.DOTALL)
FILE = re.compile(r".*_(\d+)(\.parquet|\.log\..*)", re.DOTALL)
COMMIT = re.compile(r"/([^./]+)\.(delta)?commit")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def refused(name: str) -> bool:
    parts = name.split("/")
    fits = all(part not in (".", "..") and 1 <= len(part.encode()) <= 255 for part in parts)
    return not (fits and len(name.encode()) <= 4096 and parts[0] != ".hoodie" and MARKER.fullmatch(name)) or bool(
        CONTROL.search(name)
    )


def create(line: Line, storage: Line) -> Call:
    if refused(line["name"]):
        return {"error": "rejected", "message": "no marker name"}
    done = yield {"do": "put", "path": f"{line['directory']}/{line['name']}", "data": "", "if_absent": True}
    if done.get("error") == "precondition-failed":
        return {"result": False}
    return {"error": done["error"], "message": "not stored"} if "error" in done else {"result": True}


def names(line: Line, storage: Line) -> Call:
    prefix = f"{line['directory']}/"
    done = yield from steadily(storage, do="list", prefix=prefix)
    found = [path.removeprefix(prefix) for path in done["paths"]]
    return {"names": [name for name in found if not refused(name)]}


def exists(line: Line, storage: Line) -> Call:
    found = yield from names(line, storage)
    return {"result": bool(found["names"])}


def delete(line: Line, storage: Line) -> Call:
    done = yield from steadily(storage, do="list", prefix=f"{line['directory']}/")
    for path in done["paths"]:
        yield from steadily(storage, do="delete", path=path)
    return {"result": bool(done["paths"])}


def commits(line: Line, storage: Line) -> Call:
    """The completed commits of the table: what each says, by its instant."""
    prefix = f"{line['table']}/.hoodie"
    listed, said = (yield from steadily(storage, do="list", prefix=f"{prefix}/")), {}
    for path in listed["paths"]:
        if commit := COMMIT.fullmatch(path.removeprefix(prefix)):
            done = yield from steadily(storage, do="get", path=path)
            said[commit[1]] = base64.b64decode(done["data"]).decode()
    return said


def of_others(file: str, instant: str, committed: Line) -> bool:
    """Whether another write made a file. The name of a log file says only which base file it belongs to."""
    named = FILE.fullmatch(file)
    if named is None or named[2] == ".parquet":
        return named is not None and named[1] != instant
    said = any(file.rpartition("/")[2] in text for text in committed.values())
    return said or named[1] not in (instant, *committed)


def roll_back(line: Line, storage: Line) -> Call:
    """Delete what the failed write left: each file that a marker names, then its entries of the timeline."""
    listed = yield from steadily(storage, do="markers")
    committed = yield from commits(line, storage)
    for file in (name.rpartition(".marker.")[0] for name in listed["names"]):
        if not of_others(file, line["instant"], committed):
            yield from steadily(storage, do="delete", path=f"{line['table']}/{file}")
    for path in line["entries"]:
        yield from steadily(storage, do="delete", path=path)
    return {"result": True}


CALLS = {"create": create, "list": names, "exists": exists, "delete": delete, "rollback": roll_back}

if __name__ == "__main__":
    serve("rollback", ["rollback"], lambda line, storage: CALLS[line["operation"]](line, storage))
