"""The parts of Corosync's closed process groups (`corosync/cpg.h`) that the adapter uses.

A `Connection` is for one group. Any thread may send, join and leave; one thread makes the upcalls.
"""
import ctypes
import os
import select
import traceback
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p

from views import Change, Ring

OK, TRY_AGAIN = 1, 6
NAMES = {2: "LIBRARY", 3: "VERSION", 4: "INIT", 5: "TIMEOUT", 6: "TRY_AGAIN", 7: "INVALID_PARAM",
         8: "NO_MEMORY", 9: "BAD_HANDLE", 10: "BUSY", 11: "ACCESS", 12: "NOT_EXIST",
         13: "NAME_TOO_LONG", 14: "EXIST", 16: "INTERRUPT", 18: "NO_RESOURCES",
         19: "NOT_SUPPORTED", 22: "MESSAGE_ERROR", 23: "QUEUE_FULL", 26: "TOO_BIG"}
MODEL_V1, DELIVER_INITIAL_TOTEM_CONF = 1, 1
TYPE_AGREED, DISPATCH_ONE_NONBLOCKING = 2, 4
NAME_BYTES_MAX = 128


class CorosyncError(Exception):
    """The answer of a call that was not `CS_OK`."""

    def __init__(self, call, code):
        self.code = code
        self.name = f"CS_ERR_{NAMES[code]}" if code in NAMES else "an error of Corosync's"
        super().__init__(f"{call}: {self.name} ({code})")

    def is_definite(self):
        """Returns whether a send that ends with this error had no effect. A long message whose
        pieces were interrupted by a membership change had no effect: its last piece was never sent,
        and receivers drop the others. After a lost connection, this is unknown."""
        return NAMES.get(self.code) not in ("LIBRARY", "TIMEOUT", "MESSAGE_ERROR")


class TryAgain(CorosyncError):
    """There is no room, the ring is being formed, or the daemon is starting."""


class _Name(ctypes.Structure):
    _fields_ = [("length", c_uint32), ("value", c_char * NAME_BYTES_MAX)]


class _Address(ctypes.Structure):
    _fields_ = [("nodeid", c_uint32), ("pid", c_uint32), ("reason", c_uint32)]


class _RingId(ctypes.Structure):
    _fields_ = [("nodeid", c_uint32), ("seq", c_uint64)]


class _Part(ctypes.Structure):
    _fields_ = [("base", c_char_p), ("length", c_size_t)]


_Addresses = POINTER(_Address)
_Deliver = ctypes.CFUNCTYPE(None, c_uint64, c_void_p, c_uint32, c_uint32, c_void_p, c_size_t)
_Changed = ctypes.CFUNCTYPE(None, c_uint64, c_void_p, _Addresses, c_size_t, _Addresses, c_size_t,
                            _Addresses, c_size_t)
_Formed = ctypes.CFUNCTYPE(None, c_uint64, _RingId, c_uint32, c_void_p)


class _Model(ctypes.Structure):
    _fields_ = [("model", c_int), ("deliver", _Deliver), ("changed", _Changed),
                ("formed", _Formed), ("flags", c_int)]


def _call(name, *arguments):
    code = getattr(_library, name)(*arguments)
    if code != OK:
        raise (TryAgain if code == TRY_AGAIN else CorosyncError)(name, code)


def _guarded(upcall):
    """Wraps an upcall, because the library would lose an exception."""
    def guarded(*arguments):
        try:
            upcall(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return guarded


_library = ctypes.CDLL("libcpg.so.4")


class Connection:
    """A connection to the daemon, whose upcalls are `deliver(sender, payload)`, `changed(change)`
    and `formed(ring)` of `receiver`."""

    def __init__(self, receiver):
        def deliver(_handle, _name, nodeid, pid, payload, length):
            receiver.deliver((nodeid, pid), ctypes.string_at(payload, length) if length else b"")

        def changed(_handle, _name, *lists):
            members, left, joined = (
                [((of.nodeid, of.pid), of.reason) for of in first[:count]] if count else []
                for first, count in zip(lists[::2], lists[1::2]))
            receiver.changed(Change([of for of, _ in members], left, joined))

        def formed(_handle, ring, _count, _nodes):
            receiver.formed(Ring(ring.seq, ring.nodeid))

        self.handle = c_uint64()
        # Kept as long as the library may make upcalls.
        self.model = _Model(MODEL_V1, _Deliver(_guarded(deliver)), _Changed(_guarded(changed)),
                            _Formed(_guarded(formed)), DELIVER_INITIAL_TOTEM_CONF)
        _call("cpg_model_initialize", byref(self.handle), MODEL_V1, byref(self.model), None)

    def nodeid(self):
        found = c_uint32()
        _call("cpg_local_get", self.handle, byref(found))
        return found.value

    def join(self, group):
        """Requests membership in `group`, the only group of this connection. The process is a
        member once its first membership change has been reported."""
        self.group = _Name(len(group), group)
        _call("cpg_join", self.handle, byref(self.group))

    def leave(self):
        """Requests to leave. The process has left once that membership change has been reported."""
        _call("cpg_leave", self.handle, byref(self.group))

    def multicast(self, payload):
        """Sends a message in the agreed order."""
        part = _Part(payload, len(payload))
        _call("cpg_mcast_joined", self.handle, TYPE_AGREED, byref(part), 1)

    def dispatch(self, is_over):
        """Makes upcalls until `is_over()`; raises an error if the daemon has ended."""
        descriptor = c_int()
        _call("cpg_fd_get", self.handle, byref(descriptor))
        ready = select.poll()
        ready.register(descriptor.value, select.POLLIN)
        while not is_over():
            # Reports that the daemon sent before it hung up can still be read.
            has_hung_up = any(event & ~select.POLLIN for _, event in ready.poll(500))
            try:
                while not is_over():
                    _call("cpg_dispatch", self.handle, DISPATCH_ONE_NONBLOCKING)
            except TryAgain:
                if has_hung_up:
                    raise
