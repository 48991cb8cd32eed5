"""How long each collective of a program takes on the torus, found once for all that are alike."""

import numpy as np

from compare.hlo.collective import Collective
from compare.hlo.devices.groups import Groups
from compare.timing.errors import TimingError
from compare.timing.model.algorithms import Algorithm, algorithm
from compare.timing.model.device_classes import Meeting
from compare.timing.model.exchange import Exchange, exchange
from compare.timing.model.hardware import Hardware
from compare.timing.model.links import SLOTS, TO_NETWORK, Torus
from compare.timing.model.schedule_program import Notes, Talk


class Meetings:
    """Remembers exchanges by kind, groups and algorithm, and meetings by their bytes too."""

    def __init__(self, torus: Torus, hardware: Hardware, notes: Notes):
        self._torus, self._hardware, self._notes = torus, hardware, notes
        self._exchanges: dict[tuple[str, Groups, Algorithm], Exchange] = {}
        self._meetings: dict[tuple[object, ...], Meeting] = {}

    def of(self, comm: Talk) -> Meeting:
        row = comm.row
        groups = row.mesh_groups
        largest = max((device for group in groups for device in group), default=0)
        if largest >= len(self._torus.places):
            raise TimingError(f"{row.name} names device {largest}, but there are {len(self._torus.places)} of them")
        if row.network == "dcn":
            return self._between_slices(row, groups)
        how = algorithm(row.kind, comm.text if "collective_algorithm_config" in comm.text else row.text)
        key = (row.kind, groups, how, row.payload_bytes)
        if key not in self._meetings:
            if how.note:
                self._notes.add(f"{row.name}: {how.note}")
            parts = self._exchange(row.kind, groups, how).parts(row.payload_bytes, self._hardware)
            uses = self._exchange(row.kind, groups, how).uses
            pairs = row.kind == "collective-permute"
            self._meetings[key] = Meeting(groups, pairs, parts.before, parts.moving, uses)
        return self._meetings[key]

    def _exchange(self, kind: str, groups: Groups, how: Algorithm) -> Exchange:
        key = (kind, groups, how)
        if key not in self._exchanges:
            self._exchanges[key] = exchange(kind, groups, self._torus, how)
        return self._exchanges[key]

    def _between_slices(self, row: Collective, groups: Groups) -> Meeting:
        """Through the data centre's network: every device sends its part over its share of its host's cards."""
        key = ("dcn", groups, row.device_bytes)
        if key not in self._meetings:
            sent = [max((float(row.device_bytes[device]) for device in group), default=0.0) for group in groups]
            moving = np.array(sent) / self._hardware.dcn_bytes_per_ns
            before = np.where(moving > 0, self._hardware.dcn_launch_ns, 0.0)
            uses = tuple(frozenset(int(self._torus.chip[one]) * SLOTS + TO_NETWORK for one in g) for g in groups)
            pairs = row.kind == "collective-permute"
            self._meetings[key] = Meeting(groups, pairs, before, moving, uses)
        return self._meetings[key]
