"""Same plan, same history: byte for byte, in another process with another hash seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.draws(runs=60, one_in=20)
def test_two_processes_with_different_hash_seeds_agree(chaos_seed: int) -> None:
    command = [sys.executable, "-m", "properties.same_seed_twice", "--seeds", "60", "--first", str(chaos_seed)]
    result = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "60 seeds twice in different processes, 0 different histories" in result.stdout
