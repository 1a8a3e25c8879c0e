"""The recorded events of a run.

model.py  a header and one event a row, read from and written to files; some tables of a history
index/    one history indexed once, for judges and statistics
"""

from marker_sim.history.model import (
    APPLICATION_ENDED,
    NOT_GETTING_ON,
    SCHEMA,
    UNSUPPORTED,
    Event,
    Header,
    History,
    Kind,
    Value,
    answer_bound_before_faults,
    answer_bound_ms,
    decode_value,
    encode_value,
    parse_lines,
    read_jsonl,
    write_jsonl,
)

__all__ = [
    "APPLICATION_ENDED",
    "NOT_GETTING_ON",
    "SCHEMA",
    "UNSUPPORTED",
    "Event",
    "Header",
    "History",
    "Kind",
    "Value",
    "answer_bound_before_faults",
    "answer_bound_ms",
    "decode_value",
    "encode_value",
    "parse_lines",
    "read_jsonl",
    "write_jsonl",
]
