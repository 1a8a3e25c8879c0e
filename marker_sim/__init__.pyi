"""The types of the public names; which module has each is in __init__.py."""

from marker_sim.campaign.machines.machine import attack as attack
from marker_sim.campaign.machines.machine import machine_for as machine_for
from marker_sim.campaign.machines.operations import MarkerMachine as MarkerMachine
from marker_sim.campaign.machines.rules import WritePathMachine as WritePathMachine
from marker_sim.errors import HarnessError as HarnessError
from marker_sim.errors import UsageError as UsageError
from marker_sim.interface.calls import judge as judge
from marker_sim.interface.calls import replay as replay
from marker_sim.interface.calls import verify as verify
from marker_sim.interface.verdict import Defect as Defect
from marker_sim.interface.verdict import Verdict as Verdict
from marker_sim.loading import load_system as load_system
from marker_sim.markers.store import Context as Context
from marker_sim.markers.store import Created as Created
from marker_sim.markers.store import MarkerStore as MarkerStore
from marker_sim.markers.store import Rejected as Rejected
from marker_sim.names import check_marker_name as check_marker_name
from marker_sim.names import data_path as data_path
from marker_sim.names import is_append as is_append
from marker_sim.plan import Plan as Plan
from marker_sim.plan import read_plan as read_plan
from marker_sim.seams import Capabilities as Capabilities
from marker_sim.seams import Condition as Condition
from marker_sim.seams import Conflicted as Conflicted
from marker_sim.seams import Content as Content
from marker_sim.seams import DiskFull as DiskFull
from marker_sim.seams import Mailbox as Mailbox
from marker_sim.seams import NoAnswer as NoAnswer
from marker_sim.seams import NotFound as NotFound
from marker_sim.seams import PathRefused as PathRefused
from marker_sim.seams import PreconditionFailed as PreconditionFailed
from marker_sim.seams import Refused as Refused
from marker_sim.seams import Reply as Reply
from marker_sim.seams import Request as Request
from marker_sim.seams import Runtime as Runtime
from marker_sim.seams import SeamError as SeamError
from marker_sim.seams import Storage as Storage
from marker_sim.seams import StorageError as StorageError
from marker_sim.seams import StorageFailed as StorageFailed
from marker_sim.seams import StorageTimeout as StorageTimeout
from marker_sim.seams import Throttled as Throttled
from marker_sim.seams import Unsupported as Unsupported
from marker_sim.seams import Wire as Wire
from marker_sim.seams import WireError as WireError
from marker_sim.system import System as System

__version__: str
__all__: list[str]
