"""What happened, drawn: pictures computed from histories, charts from numbers.

picture.py  the picture of a failure: lanes, bars, faults, ticks (drawn by picture.js); the same run without a script,
            below the probability of its violation (drawn by lanes.html.j2)
stored.py   the content of storage, for each moment of a picture
charts.py   small bar charts and lines over time; faults by phase as a map; throughput and latency of runs in real time
"""
