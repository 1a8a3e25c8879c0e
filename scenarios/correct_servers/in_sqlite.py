"""Markers as rows of one SQLite database for all tables; nothing lies in marker directories at all.

python in_sqlite.py PORT ROOT          serve
python in_sqlite.py --names DIR        print the names of a directory, for --reader
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from pathlib import Path

DATABASE = "markers.sqlite"
PATIENCE_S = 60.0
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.


def main() -> None:
    """Serve, or print."""
    first, second = sys.argv[1:3]
    if first == "--names":
        database = next((above / DATABASE for above in Path(second).parents if (above / DATABASE).is_file()), None)
        for (name,) in _open(database).execute("SELECT name FROM markers WHERE dir = ?", (second,)) if database else ():
            print(name)
        return
    from scenarios.correct_servers.plain_http import Markers, serve

    class InSqlite(Markers):
        """A connection a thread; the database has the locks."""

        def __init__(self, database: Path) -> None:
            self._here = threading.local()
            self._database = database

        def _do(self, statement: str, *values: str) -> sqlite3.Cursor:
            if not hasattr(self._here, "connection"):
                self._here.connection = _open(self._database)
            done: sqlite3.Cursor = self._here.connection.execute(statement, values)
            return done

        def create(self, directory: str, name: str) -> bool:
            return self._do("INSERT OR IGNORE INTO markers VALUES (?, ?)", directory, name).rowcount > 0

        def names(self, directory: str) -> list[str]:
            return [name for (name,) in self._do("SELECT name FROM markers WHERE dir = ?", directory)]

        def delete(self, directory: str) -> bool:
            return self._do("DELETE FROM markers WHERE dir = ?", directory).rowcount > 0

    database = Path(second, DATABASE)
    with _open(database) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS markers (dir TEXT, name TEXT, PRIMARY KEY (dir, name))")
        # A write: where its shared memory could not be opened once, SQLite only reads as long as this process lives.
        connection.execute("PRAGMA user_version = 1")
    serve(int(first), second, InSqlite(database))


def _open(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, timeout=PATIENCE_S, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


if __name__ == "__main__":
    main()
