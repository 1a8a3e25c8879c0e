"""Mutants of the codec: names, their bytes in a marker file, the names of marker files (names.py)."""

# ruff: noqa: E501 (a change of source text is shown as it stands)

from __future__ import annotations

from functools import partial

from marker_sim.mutants import Mutant

_names = partial(Mutant, module="names")
_encoding = partial(_names, before='    return "".join(f"{name}\\n" for name in names).encode("utf-8")\n')
_path_of = partial(_names, before="    return name.rpartition(_INFIX)[0]\n")

CODEC = (
    _encoding(
        name="leading-slash",
        record="P 4112: non-partitioned markers carried a leading slash",
        after='    return "".join(f"{name}\\n" if "/" in name else f"/{name}\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _encoding(
        name="decoded-names",
        record="plausible: names are URL-decoded on their way to storage",
        after='    return "".join(name.replace("%2F", "/") + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _names(
        name="line-break-accepted",
        record="plausible: control characters are not refused, a line break makes two names of one",
        before="    if _CONTROL.search(name):\n",
        after="    if False:\n",
        kills="G12",
    ),
    _encoding(
        name="stripped-names",
        record="plausible: names are stripped of white space on their way to storage",
        after='    return "".join(name.strip() + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _names(
        name="append-by-substring",
        record="HUDI-1517, P 4913: a log file's marker is recognised by a part of its name instead of its type",
        before='    return name.endswith(f"{_INFIX}{MarkerType.APPEND.value}")\n',
        after='    return "APPEND" in name\n',
        kills="G4",
    ),
    _encoding(
        name="windows-line-ends",
        record="plausible: lines end as on Windows, and the reader splits at the line feed",
        after='    return "".join(f"{name}\\r\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _encoding(
        name="ascii-only",
        record="plausible: a file is written in the platform's encoding, which cannot say every name",
        after='    return "".join(f"{name}\\n" for name in names).encode("ascii", "replace")\n',
        kills="G4",
    ),
    _encoding(
        name="unicode-normalised",
        record="plausible: names are brought to Unicode's composed form",
        after='    import unicodedata\n\n    return "".join(unicodedata.normalize("NFC", name) + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _encoding(
        name="lower-case",
        record="plausible: names are folded to one case, as a table name would be",
        after='    return "".join(f"{name[:1].lower()}{name[1:]}\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _encoding(
        name="three-bytes-at-most",
        record="plausible: a table takes characters of at most three bytes, and loses those of four",
        after='    return "".join(re.sub("[\\U00010000-\\U0010ffff]", "", name) + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _encoding(
        name="quotes-dropped",
        record="plausible: names are unquoted on their way to storage",
        after='    return "".join(name.replace("\\"", "").replace("\\x27", "") + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _encoding(
        name="cut-at-255-bytes",
        record="plausible: a name has the room that one segment of a path may have, and loses the rest",
        after='    return b"".join(name.encode("utf-8")[:255] + b"\\n" for name in names)\n',
        kills="G4",
    ),
    _encoding(
        name="trailing-dot-stripped",
        record="plausible: a segment of a path loses dots and spaces at its end, as on Windows",
        after='    return "".join(re.sub(r"[. ]+(?=/)", "", name) + "\\n" for name in names).encode("utf-8")\n',
        kills="G4",
    ),
    _encoding(
        name="no-last-line-end",
        record="plausible: lines are joined by line feeds and the last has none, so the next batch continues it",
        after='    return "\\n".join(names).encode("utf-8")\n',
        kills="G1",
    ),
    _names(
        name="torn-line-read",
        record="plausible: files are rewritten in place, and what a crash left of the last line is taken for a name",
        before='    whole = data if torn else data[: data.rfind(b"\\n") + 1]\n',
        after="    whole = data\n",
        kills="G4",
        also=(
            (
                "markers.files",
                "            raise PreconditionFailed(path)\n        return storage.put(path, data)\n",
                "            raise PreconditionFailed(path)\n        storage.overwrite(path, data)\n        return storage.get(path).version\n",
            ),
        ),
    ),
    _names(
        name="ten-files-at-most",
        record="plausible: the index of a marker file is read as one digit",
        before='_MARKER_FILE = re.compile(r"MARKERS(0|[1-9][0-9]*)\\Z")\n',
        after='_MARKER_FILE = re.compile(r"MARKERS([0-9])\\Z")\n',
        kills="G11",
    ),
    _names(
        name="prefix-taken-for-marker-file",
        record="plausible: whatever begins like a marker file is one, a partition of that name as well",
        before="    match = _MARKER_FILE.match(file_name)\n",
        after='    match = _MARKER_FILE.match(file_name.partition("/")[0])\n',
        kills="G11",
    ),
    _path_of(
        name="first-infix",
        record="plausible: a marker's name is cut where the first .marker. is",
        after="    return name.partition(_INFIX)[0]\n",
        kills="G14",
    ),
    _path_of(
        name="decoded-data-path",
        record="plausible: the path of a data file is URL-decoded once too often",
        after='    return name.rpartition(_INFIX)[0].replace("%2F", "/")\n',
        kills="G15",
    ),
    _path_of(
        name="slash-before-data-path",
        record="P 4112: the data path of a table without partitions began with a slash, and no such file was found",
        after='    path = name.rpartition(_INFIX)[0]\n    return path if "/" in path else f"/{path}"\n',
        kills="G14",
    ),
    _names(
        name="parent-directories-accepted",
        record="plausible: a name with .. segments is accepted and leaves its directory",
        before='    if any(part in ("", ".", "..") for part in segments):\n        raise ValueError("the marker name has',
        after='    if any(part in ("", ".") for part in segments):\n        raise ValueError("the marker name has',
        kills="G12",
    ),
    _names(
        name="length-unlimited",
        record="plausible: the stated limit of a name's length is not kept",
        before='    if len(name.encode("utf-8")) > NAME_SIZE_MAX_BYTES:\n',
        after='    if len(name.encode("utf-8")) > 2 * NAME_SIZE_MAX_BYTES and "/" not in name:\n',
        kills="G12",
        also=(
            (
                "names",
                '    if any(len(part.encode("utf-8")) > SEGMENT_SIZE_MAX_BYTES for part in segments):\n',
                "    if False:\n",
            ),
        ),
    ),
    _names(
        name="ascii-controls-only",
        record="plausible: control characters are those of ASCII, and other line ends pass",
        before='_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]")\n',
        after='_CONTROL = re.compile("[\\x00-\\x1f\\x7f]")\n',
        kills="G12",
    ),
)
