"""Options of `verify` in the table `[tool.marker-sim]` of pyproject.toml in the current directory, by their long names.

They become words of the command line, so that a report names the whole command; what is written there wins. Other
commands take no options from it: a time or a directory that suits one does not suit another.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

from marker_sim.errors import UsageError
from marker_sim.reading import either

FILE = Path("pyproject.toml")
TABLE = "[tool.marker-sim]"
# Two ways to say how long: of the file's, only what does not contradict the command line.
INSTEAD = {"runs": "budget", "budget": "runs"}


def settings_words(flags: Mapping[str, bool], given: Collection[str]) -> list[str]:
    """The words for what the file sets and the command line does not; UsageError for a key that is no option.

    flags: the options, and which of them take no value. given: those of the command line.
    """
    try:
        table = tomllib.loads(FILE.read_text(encoding="utf-8")).get("tool", {}).get("marker-sim", {})
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"{FILE} cannot be read: {error}") from error
    words = []
    for name, value in table.items():
        if name not in flags or name == "help":
            options = either(sorted(flags.keys() - {"help"}))
            raise UsageError(f"{TABLE} of {FILE} has a key {name!r}; write options of verify: {options}")
        if flags[name] != isinstance(value, bool) or not isinstance(value, str | int):
            takes = "true or false" if flags[name] else "a text or a whole number"
            raise UsageError(f"{name} = {value!r} was given in {TABLE} of {FILE}; write {takes}")
        if name not in given and INSTEAD.get(name) not in given and value is not False:
            words.append(f"--{name}" if flags[name] else f"--{name}={value}")
    return words
