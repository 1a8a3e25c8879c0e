"""Names of `marker_sim.worlds` that tests use."""

from marker_sim.worlds.door import kernel
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.door.calls import Caller, CallOutcome, Decision, FileCall, HeldCalls
from marker_sim.worlds.door.door import Door
from marker_sim.worlds.door.front import POWER, UNSEEN, DirectoryFront
from marker_sim.worlds.door.kernel import own_numbers
from marker_sim.worlds.door.known_files import files_below
from marker_sim.worlds.door.launch import FILES_MAX, DoorCommand
from marker_sim.worlds.door.table import FICLONE, MACHINES, OWN, STOPPED, Machine, assemble, numbers, this_machine
from marker_sim.worlds.http.clients import Requests, as_sent
from marker_sim.worlds.http.fault_injector import SECOND_STARTUP_S, ServerFaultInjector
from marker_sim.worlds.http.http_client import HttpConnection, head, interpret, probe, query
from marker_sim.worlds.http.local_world import LocalWorld
from marker_sim.worlds.http.plan_faults import CANNOT, FOR_MS_MAX, OF_CLIENTS, OF_SERVERS, OUTSIDE, PlanFaults, done
from marker_sim.worlds.http.plan_wires import STORAGE_WIRE, WIRE
from marker_sim.worlds.http.planned_run import HOSTILE, OF_PLANS, ForeignSystem, PlannedRun, PlayedPlan
from marker_sim.worlds.http.probes import Watch
from marker_sim.worlds.http.s3_worlds import FrontWorld, environment
from marker_sim.worlds.http.servers import ANSWER_TIMEOUT_S, VARIABLE, Command, Fleet, Server, ServerPlace, lease_port
from marker_sim.worlds.http.starvation import (
    WORTH_MS,
    ProcessorTime,
    ProcessorUse,
    Starvation,
    processor_use,
    starved_ms,
)
from marker_sim.worlds.http.world import UNREAD, DirectoryReader, Endpoint, Surroundings, run_reader, within
from marker_sim.worlds.interceptor import DRIVERS, HEAD, ArmedFault, Interceptor, StorageCall
from marker_sim.worlds.processes.cluster import ProcessCluster
from marker_sim.worlds.processes.fork_server import FORK_TIMEOUT_S, ForkServer
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.processes.seams import ThreadRuntime
from marker_sim.worlds.processes.storages import LocalFront
from marker_sim.worlds.proxies.faults import BROKEN, WireFaults, afflicted, described
from marker_sim.worlds.proxies.toxiproxy import ProxiedWire, Toxiproxy
from marker_sim.worlds.recorder import Recorder, observe_table
from marker_sim.worlds.s3_front import BUCKET, ProbedCapabilities, S3Front, probe_s3
from marker_sim.worlds.s3_front.consistency_probe import ROUNDS, BrokenPromise, ProbeReply, judge_race
from marker_sim.worlds.s3_front.front import Limits, prefix_of
from marker_sim.worlds.s3_front.http_server import HttpServer, Response
from marker_sim.worlds.s3_front.store import MotoStore
from marker_sim.worlds.simulated.cluster import FOREIGN, Branch, Cluster, by_steps, run
from marker_sim.worlds.simulated.storage import CAPABILITIES
from marker_sim.worlds.simulated.watchdog import watched
from marker_sim.worlds.spark.application import Application, Gone, Hangs, OutOfTime
from marker_sim.worlds.spark.fault_injector import TASK_EFFECTS, TableFaultInjector
from marker_sim.worlds.spark.hudi.choices import EXECUTOR_STEPS, FIRST_S, Choices, TableRound, deciding, forecast
from marker_sim.worlds.spark.hudi.future import FUTURES, TableWithFuture, with_future
from marker_sim.worlds.spark.hudi.future import SETTINGS as FUTURE_SETTINGS
from marker_sim.worlds.spark.hudi.java_driver import JavaDriver, JavaDrivers, JavaFaultInjector, effect_of, java_options
from marker_sim.worlds.spark.hudi.settings import (
    SHARING,
    Program,
    draw_table,
    has_rewrites,
    hudi_options,
    key_count,
    partition_names,
    shape_of,
    traits,
)
from marker_sim.worlds.spark.hudi.steps import (
    DATA,
    KILLED_AT,
    PREPARED,
    REWRITE,
    TABLE,
    Stage,
    TableStep,
    aimed_at,
    call_of,
    executor_troubles,
    last_data_file,
    places_of,
    put_call,
    steps_of,
    storage_troubles,
    with_steps,
)
from marker_sim.worlds.spark.hudi.table import Pace, Table, WriteRefused
from marker_sim.worlds.spark.hudi.table_run import in_mode, play_table
from marker_sim.worlds.spark.hudi.table_storage import TableStorage, bucket_storage, local_storage
from marker_sim.worlds.spark.outcome import SparkRun
from marker_sim.worlds.spark.plans import (
    DRIVER,
    STORAGE,
    TASKS,
    driver_kill,
    driver_plan,
    first_writes,
    phase_of,
    taking_back_fails,
    task_fault,
    task_plan,
    with_faults,
)
from marker_sim.worlds.spark.run import SparkProcesses, run_spark
from marker_sim.worlds.spark.standalone import HOSTS, Standalone
