"""The shared part of these adapters: a member whose system keeps one replicated log of records.

A system is a class with a `name`, a `version`, its `features`, and these methods:

- `start()` starts the node's server, if it has one, and returns when records can be appended;
- `append(key, record)` returns when the system has accepted the record, or raises `Refused`;
- `read()` yields each record of the log, from the first on, with its position, a rising number;
- `leave()`, only with the feature `leave`, takes the node out of the system;
- `clean()`, for servers with large files, removes them at the end.

A record is one line of JSON with its sender and groups, and then the payload. All groups share the
log, and a member delivers the records that are addressed to one of its groups. Servers are children
of the adapter in its process group, so the driver's faults affect a node's server too.
"""
import ctypes
import hashlib
import json
import os
import queue
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

# Below the ports that the kernel assigns to connections.
PORTS = range(20000, 32000)
NODES_MAX = 64
# Interval between checks for something that does not exist yet.
PAUSE_S = 0.02


class Refused(Exception):
    """The system refused a record or, if not `definite`, may have refused it."""

    def __init__(self, code, definite=True):
        super().__init__(code)
        self.code, self.definite = code, definite


class Unsupported(Exception):
    """The system lacks a feature that this node needs; the text is the system's."""


def groups_of(record):
    """Returns the groups that a record is addressed to."""
    return json.loads(record.split(b"\n", 1)[0])["groups"]


def log(text):
    """Writes a line to the member's log."""
    print(f"{time.time():.3f} {text}", file=sys.stderr, flush=True)


class Node:
    """This node's identity, and the addresses of the others."""

    def __init__(self, init):
        self.name, self.inc, self.join = init["node"], init["inc"], init["join"]
        self.names = [node["node"] for node in init["nodes"]]
        self.number = self.names.index(self.name) + 1
        self.addresses = {node["node"]: node["address"] for node in init["nodes"]}
        self.address = self.addresses[self.name]
        self.processes, self.reserved = [], []
        self.storage, self.shared = init["storage"], init["shared"]
        self.deadline_s = init["limits"]["deadline_ms"] / 1000
        self.groups_of_all = {group["group"]: group for group in init["groups"]}
        self.groups = [group["group"] for group in init["groups"] if self.name in group["members"]]
        # A node without a group is a client, and has no server.
        self.present = self._members(init, "members")
        self.servers = self._members(init, "all_members")

    def _members(self, init, field):
        named = {name for group in init["groups"] for name in group[field]}
        return [name for name in self.names if name in named]

    def has_server(self):
        return self.name in self.present

    def _ports_file(self, name):
        return os.path.join(self.shared, f"{name}.ports")

    def take_ports(self, count):
        """Returns this node's ports, which are the same after a restart and known to all."""
        if os.path.exists(self._ports_file(self.name)):
            return self.ports_of(self.name)
        ports, chance = [], random.SystemRandom()
        while len(ports) < count:
            # Nodes choose from different ranges, because they look for free ports at the same time.
            port = chance.choice(PORTS[self.number % NODES_MAX::NODES_MAX])
            with socket.socket() as trial:
                if port not in ports and not _is_taken(trial, self.address, port):
                    if self._reserve(port):
                        ports.append(port)
        with open(self._ports_file(self.name) + ".new", "w") as file:
            json.dump(ports, file)
        os.rename(file.name, self._ports_file(self.name))
        return ports

    def _reserve(self, port):
        """Reserves a port against other runs on this machine until a server listens there."""
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(f"\0tramontane-conformance-port-{port}")
        except OSError:
            return False
        self.reserved.append(holder)
        return True

    def ports_of(self, name):
        """Waits for the ports of another node."""
        until = time.monotonic() + self.deadline_s
        while not os.path.exists(self._ports_file(name)):
            if time.monotonic() > until:
                raise TimeoutError(f"{name} has no ports")
            time.sleep(PAUSE_S)
        with open(self._ports_file(name)) as file:
            return json.load(file)

    def endpoint(self, name, which):
        return f"{self.addresses[name]}:{self.ports_of(name)[which]}"

    def folder(self, name):
        """Returns a folder of this node only, kept over restarts."""
        path = os.path.join(self.storage, name)
        os.makedirs(path, exist_ok=True)
        return path

    def run(self, command, **options):
        """Starts a server that writes to the member's log and dies with the adapter."""
        log("starts " + " ".join(command))
        errors = sys.stderr.fileno()
        self.processes.append(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                             preexec_fn=_die_with_parent, **options))

    def end_servers(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def keep_trying(self, attempt, patience=1, pause_s=0.1):
        """Repeats an attempt until it succeeds, for at most `patience` times `init`'s deadline:
        the driver's clock is slower on a busy machine. If a server takes long to start, frequent
        attempts would take its processor time."""
        until = time.monotonic() + self.deadline_s * patience
        while True:
            try:
                return attempt()
            except Exception as error:
                if time.monotonic() > until:
                    raise
                log(f"not yet: {error!r}")
                time.sleep(pause_s)


def _is_taken(trial, address, port):
    try:
        trial.bind((address, port))
        return False
    except OSError:
        return True


_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Place:
    """The position in the log up to which this node has delivered, kept over restarts."""

    def __init__(self, node):
        path = os.path.join(node.storage, "place")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)
        kept = os.read(self.file, 8)
        self.before = struct.unpack("<q", kept)[0] if kept else -1

    def keep(self, place):
        # An incarnation that is killed while it replays must not lower the position.
        if place <= self.before:
            return
        # No sync is needed: writes survive a killed process, and no power is lost here.
        os.pwrite(self.file, struct.pack("<q", place), 0)


class Member:
    def __init__(self, make_system):
        self.speaking = threading.Lock()
        self.node = Node(json.loads(sys.stdin.readline()))
        self.system = make_system(self.node)
        self.place = Place(self.node)
        self.delivered = {group: 0 for group in self.node.groups}
        self.pauses = queue.SimpleQueue()
        self.commands = queue.SimpleQueue()

    def say(self, **line):
        with self.speaking:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def run(self):
        try:
            self.system.start()
        except Unsupported as lacking:
            self.say(type="error", code="unsupported", definite=True, text=str(lacking))
            self.end("done")
        self.say(type="init_ok", name=self.system.name, version=self.system.version,
                 features=self.system.features)
        if self.node.groups:
            threading.Thread(target=self.deliver_all, daemon=True).start()
        threading.Thread(target=self.send_all, daemon=True).start()
        for line in sys.stdin:
            command = json.loads(line)
            if command["type"] == "stop":
                break
            if command["type"] == "pause":
                self.pauses.put(command["ms"] / 1000)
                self.say(type="ok")
            elif command["type"] in ("multicast", "leave"):
                self.commands.put(command)
            else:
                self.say(type="error", code="unsupported", definite=True)
        self.end("done")

    def end(self, reason):
        if hasattr(self.system, "clean"):
            self.node.end_servers()
            self.system.clean()
        self.say(type="halt", reason=reason)
        # The servers die with this process.
        os._exit(0)

    def send_all(self):
        """Sends messages one by one, each after the previous answer, to keep their order."""
        while True:
            command = self.commands.get()
            if command["type"] == "leave":
                self.system.leave()
                self.end("left")
            name = command["message"]
            payload = ((name + " ") * command["bytes"])[: command["bytes"]].encode()
            header = {"sender": self.node.name, "groups": command["groups"]}
            try:
                self.system.append(name, json.dumps(header).encode() + b"\n" + payload)
                self.say(type="ok", message=name)
            except Refused as refused:
                self.say(type="error", message=name, code=refused.code, definite=refused.definite)

    def deliver_all(self):
        try:
            for place, record in self.system.read():
                self.deliver(place, record)
        except Exception as error:
            log(f"reads no more: {error!r}")
            self.say(type="halt", reason="halted", text=repr(error))
            os._exit(1)

    def deliver(self, place, record):
        header, payload = record.split(b"\n", 1)
        header = json.loads(header)
        group = next((one for one in header["groups"] if one in self.delivered), None)
        # The position is stored first, so that a delivery just before a kill is replayed after it.
        self.place.keep(place)
        if group is None:
            return
        told = {"message": payload.split(b" ")[0].decode() or None, "bytes": len(payload)}
        if payload:
            told["digest"] = hashlib.sha256(payload).hexdigest()[:16]
        if place <= self.place.before:
            told["replayed"] = True
        self.say(type="deliver", sender=header["sender"], group=group, **told)
        if "durable" in self.system.features:
            self.say(type="durable", group=group, upto=self.delivered[group])
        self.delivered[group] += 1
        if not self.pauses.empty():
            time.sleep(self.pauses.get())


def run(make_system):
    Member(make_system).run()
