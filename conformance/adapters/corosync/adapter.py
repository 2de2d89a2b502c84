#!/usr/bin/env python3
"""Corosync: one member of its closed process groups (CPG).

One thread reads commands, one thread per group makes upcalls, and the main thread carries out
commands. Each group has a separate connection (cpg_join(3)), so the upcalls of two groups have no
common order. Each member starts its own daemon, in its network namespace.

    --token-ms N      time after which a silent node is removed; by default 1000
    --networks LIST   if the driver gives the nodes no separate addresses: processes, one per node,
                      whose network namespaces to use, with addresses starting at 10.113.1.1
"""
import argparse
import ctypes
import hashlib
import ipaddress
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque

import cpg
from views import Numbering, Registry

# The features that cpg_join(3), cpg_leave(3) and cpg_mcast_joined(3) promise, or that a process
# provides itself (to be slow or suspended).
# - `several-groups`: a process may have several connections, each with one group.
# - Not `order-across-groups`: cpg_join(3) "may only be called once for each handle", so no message
#   can be sent to two groups.
# - Not `outside-senders`: the groups are closed.
# - Not `restart`, `durable`: CPG stores nothing. Not `stats`: see `conformance/docs/corosync.md`.
FEATURES = ["views", "crash", "leave", "join", "pause", "several-groups", "suspension",
            "network", "empty-messages", "large-messages"]

# Intervals between attempts: of a call that Corosync temporarily refuses, and to connect or join.
RETRY_S, JOIN_RETRY_S = 0.001, 0.005
# Time limit for the daemon to end on request.
FAREWELL_S = 1.5

speaking = threading.Lock()
libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = [*[ctypes.c_char_p] * 3, ctypes.c_ulong, ctypes.c_void_p]
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_PRIVATE_OF_ALL = 1 << 18 | 1 << 14
PR_SET_PDEATHSIG = 1


class Refusal(Exception):
    """The reason why there is no member."""

    def __init__(self, text, code="failed"):
        super().__init__(text)
        self.code = code


def say(**line):
    """One line to the driver, whole and at once. Without a driver there is no member."""
    try:
        with speaking:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    except OSError as error:
        log(f"the driver: {error}")
        os._exit(1)


def log(text):
    print(text, file=sys.stderr, flush=True)


def checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Daemon:
    """A daemon of this member's own: the member stands for a whole node.

    It runs in this process's network namespace, with its own `/run` and `/dev/shm`, where it keeps
    its process number and its connections' memory. It dies with this process. Its state is in the
    node's storage folder, so that ring numbers rise over restarts. It has to be started before any
    thread: its life is bound to the calling thread's, and other threads would keep the old `/run`.
    """

    def __init__(self, init, options):
        addresses = self.addresses(init, options.networks)
        state = os.path.join(init["storage"], "corosync")
        os.makedirs(state, exist_ok=True)
        # `token` is the time after which a silent node counts as lost: 1 s for any number of nodes,
        # so that the suite takes only minutes. All other settings are Corosync's defaults.
        nodes = "".join(f"  node {{\n    nodeid: {number}\n    name: {node['node']}\n"
                        f"    ring0_addr: {address}\n  }}\n" for number, (node, address)
                        in enumerate(zip(init["nodes"], addresses), 1))
        with open(os.path.join(state, "corosync.conf"), "w") as file:
            file.write(f"""totem {{
  version: 2
  cluster_name: conformance
  transport: knet
  crypto_cipher: none
  crypto_hash: none
  token: {options.token_ms}
  token_coefficient: 0
}}
nodelist {{
{nodes}}}
system {{
  sched_rr: no
  state_dir: {state}
}}
logging {{
  to_syslog: no
  to_stderr: yes
}}
""")
        checked(libc.unshare(CLONE_NEWNS))
        checked(libc.mount(b"none", b"/", b"", MS_PRIVATE_OF_ALL, None))
        for target in (b"/run", b"/dev/shm"):
            checked(libc.mount(b"corosync", target, b"tmpfs", 0, None))
        with open(os.path.join(state, "corosync.log"), "ab") as errors:
            self.process = subprocess.Popen(
                ["corosync", "-f", "-c", file.name], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))

    @staticmethod
    def addresses(init, networks):
        """Returns the nodes' addresses: those of `init`, or, if all share the loopback address,
        those of the networks that were made for the nodes, after entering this node's."""
        place = [node["node"] for node in init["nodes"]].index(init["node"])
        addresses = [node["address"] for node in init["nodes"]]
        if not ipaddress.ip_address(addresses[place]).is_loopback:
            return addresses
        if place >= len(networks):
            raise Refusal(f"each daemon needs its own address, but all share {addresses[place]}; "
                          f"give each node a network namespace", "unsupported")
        with open(f"/proc/{networks[place]}/ns/net") as network:
            checked(libc.setns(network.fileno(), CLONE_NEWNET))
        return [f"10.113.1.{number}" for number in range(1, len(addresses) + 1)]

    def is_gone(self):
        return self.process.poll() is not None

    def kill(self):
        """Ends the daemon at once: the others notice when its token is missing."""
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(FAREWELL_S)
        except subprocess.TimeoutExpired:
            self.kill()


class Names:
    """Names of processes: CPG knows members by node and process number, the suite by name. Each
    member writes its name into the run's shared folder before it joins."""

    def __init__(self, shared):
        self.folder = os.path.join(shared, "corosync-members")
        os.makedirs(self.folder, exist_ok=True)
        self.known = {}

    def register(self, of, node):
        draft = os.path.join(self.folder, f".{of[0]}.{of[1]}")
        with open(draft, "w") as file:
            file.write(node)
        os.rename(draft, self.file(of))

    def file(self, of):
        return os.path.join(self.folder, f"{of[0]}.{of[1]}")

    def of(self, of):
        """Returns a process's name; that of no member of this run is its numbers."""
        if of not in self.known:
            try:
                with open(self.file(of)) as file:
                    self.known[of] = file.read()
            except OSError:
                self.known[of] = f"corosync:{of[0]}.{of[1]}"
        return self.known[of]

    def forget(self, of):
        """A process is gone: its number may come back as another member's."""
        self.known.pop(of, None)


class Group:
    """One group at one member: its upcalls become lines to the driver."""

    def __init__(self, member, name, until):
        self.member, self.name, self.is_over = member, name, False
        self.names = Names(member.init["shared"])
        self.connection = member.connect(self, until)
        self.myself = self.connection.nodeid(), os.getpid()
        self.names.register(self.myself, member.node)
        patience_s = max(0, until - time.monotonic())
        self.numbering = Numbering(self.myself, Registry(member.init["shared"], name, patience_s))
        corosync_name = name.encode()
        if len(corosync_name) >= cpg.NAME_BYTES_MAX:
            raise Refusal(f"{name} is too long a name", "unsupported")
        while True:
            try:
                self.connection.join(corosync_name)
                break
            except cpg.TryAgain:
                if time.monotonic() >= until:
                    raise
            time.sleep(JOIN_RETRY_S)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            self.connection.dispatch(lambda: self.is_over)
        except (cpg.CorosyncError, OSError) as error:
            self.member.events.put(("lost", f"{self.name}: the daemon: {error}"))

    def deliver(self, sender, payload):
        if self.numbering.held:
            log(f"{self.name}: a message between a change of membership and its ring")
        told = {"digest": hashlib.sha256(payload).hexdigest()[:16]} if payload else {}
        message = payload.split(b" ", 1)[0].decode(errors="replace") or None
        say(type="deliver", message=message, sender=self.names.of(sender), group=self.name,
            bytes=len(payload), **told)
        pause_s = self.member.take_pauses()
        if pause_s:
            time.sleep(pause_s)

    def changed(self, change):
        log(f"{self.name}: {change}")
        gone = [of for of, _ in change.left]
        if self.myself in gone:
            # "A process is only deemed to have left the group once it has been notified": there is
            # no view without this member to report.
            self.is_over = True
            self.member.events.put(("left",))
            return
        self.install(self.numbering.change(change))
        for of in gone:
            self.names.forget(of)

    def formed(self, ring):
        log(f"{self.name}: {ring}")
        self.install(self.numbering.formed(ring))

    def install(self, views):
        for number, members in views:
            say(type="view", group=self.name, view=number,
                members=[self.names.of(of) for of in members])
            self.member.events.put(("view", self.name, len(members)))


class Member:
    def __init__(self, init, daemon):
        self.init, self.node, self.daemon = init, init["node"], daemon
        self.events, self.pauses = queue.SimpleQueue(), queue.SimpleQueue()
        self.groups, self.early = {}, []
        # Requests that Corosync may defer, in order.
        self.work = deque()
        # Once this member leaves, the groups that it has not yet left.
        self.leaving = None

    def connect(self, receiver, until):
        """Connects as soon as the daemon permits it: it returns various errors while it starts."""
        while True:
            try:
                return cpg.Connection(receiver)
            except cpg.CorosyncError:
                if time.monotonic() >= until:
                    raise
            if self.daemon.is_gone():
                raise Refusal("corosync ended; see corosync.log in the storage folder")
            time.sleep(JOIN_RETRY_S)

    def take_pauses(self):
        """Returns the additional time that the next upcall takes, in seconds."""
        pause_s = 0
        try:
            while True:
                pause_s += self.pauses.get_nowait()
        except queue.Empty:
            return pause_s

    def join(self):
        """Joins the groups that name this node, and answers `init`."""
        threading.Thread(target=self.read_commands, daemon=True).start()
        until = time.monotonic() + self.init["limits"]["deadline_ms"] / 2000
        awaited = {}
        for group in self.init["groups"]:
            if self.node in group["members"]:
                name, members = group["group"], len(group["members"])
                self.groups[name] = Group(self, name, until)
                # All members or, if this member joins a running group, two members.
                awaited[name] = min(members, 2) if self.init.get("join") else members
        self.gather(awaited, until)
        said = subprocess.run(["corosync", "-v"], capture_output=True, text=True).stdout
        version = (said.split("'") + ["unknown", "unknown"])[1]
        say(type="init_ok", name="corosync-cpg", version=version, features=FEATURES)

    def gather(self, awaited, until):
        """Waits until each group has as many members as it will have. If some do not come, the run
        begins without them: views without them follow, and the suite notices. Commands that come
        meanwhile are kept."""
        unseen = set(awaited)
        while awaited:
            try:
                event = self.events.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                if unseen:
                    raise Refusal(f"no view of {', '.join(sorted(unseen))} came") from None
                return
            if event[0] == "lost":
                raise Refusal(event[1])
            if event[0] != "view":
                self.early.append(event)
                continue
            _, name, members = event
            unseen.discard(name)
            if members >= awaited.get(name, members + 1):
                del awaited[name]

    def read_commands(self):
        for line in sys.stdin.buffer:
            self.events.put(("command", line))
        self.events.put(("over",))

    def serve(self):
        """Carries out commands until it is over; returns the reason and its text."""
        for event in self.early:
            self.events.put(event)
        while True:
            over = self.take_event()
            if over:
                return over
            try:
                while self.work:
                    self.do(self.work[0])
                    self.work.popleft()
            except cpg.TryAgain:
                pass
            if self.leaving == 0:
                return "left", None

    def take_event(self):
        try:
            event = self.events.get(timeout=RETRY_S if self.work else None)
        except queue.Empty:
            return None
        if event[0] == "command":
            return self.command(event[1])
        if event[0] == "over":
            return "done", None
        if event[0] == "lost":
            return "halted", event[1]
        if event[0] == "left":
            self.leaving = max(0, (self.leaving or 0) - 1)
        return None

    def command(self, line):
        try:
            command = json.loads(line)
            kind = command["type"]
        except (ValueError, TypeError, KeyError) as error:
            refuse(f"not a command: {error!r}")
            return None
        if kind == "stop":
            return "done", None
        if kind == "multicast":
            groups = command["groups"]
            if len(groups) == 1 and groups[0] in self.groups:
                self.work.append(command)
            else:
                refuse("a message is for one group that its sender has joined",
                       message=command["message"])
        elif kind == "pause":
            self.pauses.put(command["ms"] / 1000)
            say(type="ok")
        elif kind == "leave":
            self.work.append(command)
        else:
            refuse(f"no command {kind} here")
        return None

    def do(self, command):
        """Carries out a command; raises `TryAgain` if Corosync cannot do it yet."""
        if command["type"] == "leave":
            return self.leave()
        name = command["message"]
        payload = ((name + " ") * command["bytes"])[: command["bytes"]].encode()
        group = self.groups.get(command["groups"][0])
        if group is None:
            return refuse(f"{command['groups'][0]} was left", message=name)
        try:
            group.connection.multicast(payload)
            say(type="ok", message=name)
        except cpg.TryAgain:
            raise
        except cpg.CorosyncError as error:
            say(type="error", message=name, code=error.name, definite=error.is_definite(),
                text=str(error))

    def leave(self):
        """Leaves the groups from the last to the first; one that cannot be left yet is tried
        again."""
        if self.leaving is None:
            self.leaving = len(self.groups)
        while self.groups:
            name, group = list(self.groups.items())[-1]
            try:
                group.connection.leave()
            except cpg.TryAgain:
                raise
            except cpg.CorosyncError as error:
                log(f"{name}: {error}")
                self.leaving = max(0, self.leaving - 1)
            del self.groups[name]


def refuse(text, **fields):
    say(type="error", code="unsupported", definite=True, text=text, **fields)


def start(init, options):
    """Starts the daemon; refuses what CPG cannot do."""
    if init["protocol"] != 1:
        raise Refusal(f"version {init['protocol']} of the protocol", "unsupported")
    for group in init["groups"]:
        if init["node"] in group["senders"] and init["node"] not in group["members"]:
            raise Refusal(f"{group['group']} is closed: senders are members", "unsupported")
    return Daemon(init, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--token-ms", type=int, default=1000)
    parser.add_argument("--networks", type=lambda pids: [int(pid) for pid in pids.split(",")],
                        default=[])
    options = parser.parse_args()
    first = sys.stdin.buffer.readline()
    if not first:
        return 0
    init = json.loads(first)
    daemon = None
    try:
        daemon = start(init, options)
        member = Member(init, daemon)
        member.join()
    except (Refusal, cpg.CorosyncError, OSError) as error:
        code = error.code if isinstance(error, Refusal) else "failed"
        say(type="error", code=code, definite=True, text=str(error))
        log(str(error))
        if daemon:
            daemon.end()
        return 0 if code == "unsupported" else 1
    reason, text = member.serve()
    say(type="halt", reason=reason, **({"text": text} if text else {}))
    daemon.kill() if reason == "done" else daemon.end()
    return 0


# The groups' threads wait in the library; the process's end is theirs.
status = main()
os._exit(status)
