"""Ids for views, which CPG does not have.

Corosync lists the members of a group after each change, and separately reports which ring the
daemons form. A view's id is derived from both, so that all members that install the view use the
same id, and every other view has a different one. In decimal digits, from the left:

| digits | meaning |
|---|---|
| all but the last eight | `seq` of the ring; it rises with each ring of a node, across restarts |
| three | the ring's leader, because two rings that result from one may have the same `seq` |
| five | the position of the change among this group's changes in this ring |

When a ring has formed, CPG reports at most two changes to a group, at once, before the ring's id
and before any message of the new ring: the departure of members that are not in the new ring, then
the arrival of those that were not in the old one.
- The first has position 1 to 255: the lowest node id in it. If parts of several old rings merge,
  each part receives its own change; the parts have no node in common.
- The second has position 500 on all members.

Later changes in this ring are single processes that join or leave. All members receive them in the
same order, between the same messages. Members count them: their positions are 1000, 1001 and so on.
A joining member does not know how many changes there were before; the `Registry` has that number.

This code does not compare the changes that members saw. If Corosync reports different changes to
two members, their view ids or members differ, and the checks detect this.
"""
import os
import sys
import time
from collections import namedtuple

# A ring of daemons; `nodeid` is its leader.
Ring = namedtuple("Ring", "seq nodeid")
# The members of a group, as pairs of node id and process id, and the members that left and joined,
# each with the reason.
Change = namedtuple("Change", "members left joined")

JOIN, LEAVE, NODE_DOWN, NODE_UP, PROCESS_DOWN = range(1, 6)
PLACE_AFTER_ARRIVALS, PLACE_OF_FIRST_CHANGE = 500, 1000
# Interval between two checks for a file that another member will create.
LOOK_AGAIN_S = 0.002


class Numbering:
    """Numbers the views of one group at one member."""

    def __init__(self, myself, registry):
        self.myself, self.registry = myself, registry
        self.ring = None
        # The position of the next change within the ring; `None` while this member cannot know it.
        self.next_place = None
        # Changes whose ring is not known yet. Corosync reports nothing else before that.
        self.held = []

    def change(self, change):
        """Returns the views, as ids and members, that can be numbered after a change."""
        if self.held or self.ring is None or _is_of_ring(change.left + change.joined):
            self.held.append(change)
            return []
        return [self._process(change)]

    def formed(self, ring):
        """Returns the views that waited for the ring."""
        if self.ring != ring and self.next_place is not None:
            # A member of a group when a ring forms receives all changes in it.
            self.next_place = PLACE_OF_FIRST_CHANGE
        self.ring, held, self.held = ring, self.held, []
        return [self._number(change) for change in held]

    def _number(self, change):
        if _is_of_ring(change.joined):
            return self._id(PLACE_AFTER_ARRIVALS), change.members
        if _is_of_ring(change.left):
            lowest = min((nodeid for nodeid, _ in change.members), default=0)
            return self._id(lowest), change.members
        return self._process(change)

    def _process(self, change):
        if self.next_place is not None:
            place = self.registry.agree(self.ring, change, self.next_place)
        elif change.members != [self.myself]:
            place = self.registry.learn(self.ring, change)
        else:
            place = self.registry.follow(self.ring, change)
        self.next_place = place + 1
        return self._id(place), change.members

    def _id(self, place):
        return (self.ring.seq * 1_000 + self.ring.nodeid) * 100_000 + place


def _is_of_ring(changed):
    return any(reason in (NODE_DOWN, NODE_UP) for _, reason in changed)


class Registry:
    """Positions of one group's changes, agreed on through files in the run's shared folder.

    A file represents one change of a group in a ring: its name says which members joined or left.
    Such a change happens once, because a member is a separate process that never joins again.
    (Process ids are reused only after thousands of others.) The file contains the change's
    position. It is created once and atomically, before the view is reported to the driver, so all
    members that install a view use the same position.
    """

    def __init__(self, shared, group, patience_s):
        """`patience_s` is the time for which a joining member waits for earlier members' files."""
        self.folder = os.path.join(shared, "corosync-views", group.encode().hex())
        self.patience_s = patience_s

    def agree(self, ring, change, counted):
        """Returns the position of a change that this member counted: its count, unless another
        member claimed the change earlier."""
        file = self._file(ring, change)
        draft = os.path.join(os.path.dirname(file), f".draft-{os.getpid()}-{id(self)}")
        try:
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(draft, "w") as written:
                written.write(str(counted))
            try:
                # A link is created atomically, and never replaces another.
                os.link(draft, file)
            except FileExistsError:
                place = _read(file)
                return counted if place is None else place
            finally:
                os.remove(draft)
        except OSError as error:
            print(f"the position of a view cannot be shared: {error}", file=sys.stderr)
        return counted

    def learn(self, ring, change):
        """Returns the position that the other members report for the change by which this member
        joined. If none reports it in time, they have all ended, and the change comes after all
        changes that they reported."""
        file = self._file(ring, change)
        until = time.monotonic() + self.patience_s
        while time.monotonic() < until:
            place = _read(file)
            if place is not None:
                return place
            time.sleep(LOOK_AGAIN_S)
        return self.follow(ring, change)

    def follow(self, ring, change):
        """Returns the position of a change that only this member can know: after all others in the
        ring."""
        folder = os.path.dirname(self._file(ring, change))
        names = os.listdir(folder) if os.path.isdir(folder) else []
        places = [_read(os.path.join(folder, name)) for name in names]
        last = max((place for place in places if place is not None), default=None)
        return self.agree(ring, change, PLACE_OF_FIRST_CHANGE if last is None else last + 1)

    def _file(self, ring, change):
        signed = [("+", of) for of, _ in change.joined] + [("-", of) for of, _ in change.left]
        name = "".join(f"{sign}{nodeid}.{pid}" for sign, (nodeid, pid) in signed)
        return os.path.join(self.folder, f"{ring.seq}-{ring.nodeid}", name)


def _read(file):
    try:
        with open(file) as place:
            return int(place.read())
    except (OSError, ValueError):
        return None
