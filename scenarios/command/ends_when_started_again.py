"""Play another program, whose words are the arguments, and end at its second `start`; promises no `reset`."""

import json
import subprocess
import sys

inner = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert inner.stdin and inner.stdout
starts = 0
for text in sys.stdin:
    starts += json.loads(text)["event"] == "start"
    if starts > 1:
        inner.kill()
        sys.exit(1)
    inner.stdin.write(text)
    inner.stdin.flush()
    for said in inner.stdout:
        line = json.loads(said)
        line.pop("reset", None)
        print(json.dumps(line))
        if line["do"] == "wait":
            break
    sys.stdout.flush()
inner.stdin.close()
inner.wait()
