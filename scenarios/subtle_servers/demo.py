"""Shows that each faulty server is faulty and that the correct one of its language is not.

`python -m scenarios.subtle_servers.demo [N ...]`, from the root of the clone; without numbers all are shown.
"""

import sys
from collections.abc import Callable

from scenarios.subtle_servers import demos_go, demos_python
from scenarios.subtle_servers.demo_server import GO_FROM, Bench, bench, build

DEMONSTRATIONS: dict[int, Callable[[Bench], str]] = {
    1: demos_python.normal_forms,
    2: demos_python.eleventh_file,
    3: demos_python.two_creators,
    4: demos_python.same_sizes,
    5: demos_python.full_disk,
    6: demos_python.early_duplicate,
    7: demos_python.comes_back,
    8: demos_python.log_names,
    9: demos_python.too_late,
    10: demos_python.left_from_before,
    11: demos_go.long_name,
    12: demos_go.early_answer,
    13: demos_go.same_file,
    14: demos_go.other_table,
    15: demos_go.hang_up,
    16: demos_go.old_listing,
    17: demos_go.type_later,
    18: demos_go.all_wait,
    19: demos_go.longer_instant,
    20: demos_go.one_file_more,
}


def seen(number: int, defect: int) -> str:
    """What the demonstration of a number sees at a server of that defect."""
    with bench(defect, in_go=number >= GO_FROM) as place:
        return DEMONSTRATIONS[number](place)


def main() -> int:
    numbers = [int(argument) for argument in sys.argv[1:]] or list(DEMONSTRATIONS)
    if max(numbers) >= GO_FROM:
        build()
    wrong = 0
    for number in numbers:
        faulty, correct = seen(number, number), seen(number, 0)
        wrong += not faulty or bool(correct)
        print(f"{number:2} faulty:  {faulty or 'NOT SHOWN'}", flush=True)
        print(f"   correct: {correct or 'nothing of it'}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
