"""Plans against foreign servers: started by a command, driven over HTTP, judged by what is stored.

planned_run.py        one plan: scripts.py its clients, plan_faults.py its faults, broken_requests.py those of requests,
                      plan_wires.py those of connections
stage.py              what all runs stand on
servers.py            a server as a process group: start, kill, pause, end all of it
fault_injector.py     faults of server processes
requests.py           a request as an operation of the history
http_client.py        one request, and what its result means; request_forms.py writes it in other ways
conditions.py         what of a run can decide a guarantee, measured in its history
starvation.py         how long a server waited for a processor
world.py              the storage of a run, as a protocol
local_world.py, front_world.py, external_s3.py  a directory; the kit's S3 front; the user's own S3 endpoint
s3_capabilities.py    what the consistency probe found of an object store, and what follows
object_reader.py      reads a marker directory; snapshot_recorder.py records what was read
"""
