"""Markers, one object each, and the rollback of a write: a program for `marker-sim verify --sut command`."""

import re

from program import Call, Line, serve, steadily

MARKER = re.compile(r"(.*[^/])\.marker\.(CREATE|MERGE|APPEND)", re.DOTALL)
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


def roll_back(line: Line, storage: Line) -> Call:
    """Delete what the failed write left: each file that a marker names, then its entries of the timeline."""
    listed = yield from steadily(storage, do="markers")
    for file in (name.rpartition(".marker.")[0] for name in listed["names"]):
        if file.endswith(f"_{line['instant']}.parquet"):  # Not a file that another write made.
            yield from steadily(storage, do="delete", path=f"{line['table']}/{file}")
    for path in line["entries"]:
        yield from steadily(storage, do="delete", path=path)
    return {"result": True}


CALLS = {"create": create, "list": names, "exists": exists, "delete": delete, "rollback": roll_back}

if __name__ == "__main__":
    serve("rollback", ["rollback"], lambda line, storage: CALLS[line["operation"]](line, storage))
