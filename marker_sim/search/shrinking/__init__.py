"""Makes failing plans smaller: shrinker.py runs the candidates that operations.py and writes.py propose."""
