"""A logged group whose power is cut (see `power`): three nodes on one machine."""

import json
import os
import subprocess
import threading
import time

from power_marks import Broken

NODES = 3


class Node:
    """A node, and its output."""

    def __init__(self, program, config, node, data, marks=None):
        self.node, self.marks = node, marks
        self.members, self.texts, self.durable = [], [], {}
        self.changed = threading.Condition()
        if marks:
            marks.write({"node": node, "starts": True})
        arguments = ["--config", config, "--id", str(node), "--data", data, "--json"]
        self.process = subprocess.Popen(
            [program, "node", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.errors = b""
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.hear_errors, daemon=True).start()

    def hear_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def listen(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "durable" in said and self.marks:
                self.marks.write({"node": self.node, "durable": said["durable"]})
            with self.changed:
                if said.get("event") == "view":
                    self.members = said["members"]
                elif said.get("event") == "delivery":
                    self.texts.append(said["text"])
                elif "durable" in said:
                    self.durable = said["durable"]
                self.changed.notify_all()

    def send(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def wait(self, what, is_so, seconds):
        until = time.monotonic() + seconds
        with self.changed:
            while not is_so(self):
                left = until - time.monotonic()
                gone = self.process.poll() is not None
                if left <= 0 or gone:
                    why = f"it ended with status {self.process.poll()}" if gone else "too late"
                    end = self.errors.decode(errors="replace").strip()[-300:]
                    raise TimeoutError(f"node {self.node}: {what}: {why}; {end}")
                self.changed.wait(min(left, 0.5))

    def kill(self):
        self.process.kill()
        self.process.wait()


def record(options, mounted, marks):
    """The run whose writes are recorded. It takes place in the guest, as root."""
    patience = 240

    def start(node):
        return Node(options.program, options.config, node, f"{mounted}/{node}", marks)

    def feed(nodes, part):
        for line in range(options.lines):
            for node in nodes:
                node.send(f"{part} {node.node} {line}")
            time.sleep(0.02)
        for node in nodes:
            sent = f"{part} {node.node} {options.lines - 1}"
            for other in nodes:
                other.wait(f"delivers '{sent}'", lambda at: sent in at.texts, patience)

    def whole(nodes):
        wanted = [node.node for node in nodes]
        for node in nodes:
            node.wait(f"sees {wanted}", lambda at: at.members == wanted, patience)

    nodes = [start(node) for node in range(NODES)]
    whole(nodes)
    feed(nodes, "first")
    nodes[2].kill()
    feed(nodes[:2], "second")
    whole(nodes[:2])
    nodes[2] = start(2)
    whole(nodes)
    feed(nodes, "third")
    for node in nodes:
        node.kill()
    nodes = [start(node) for node in range(NODES)]
    whole(nodes)
    feed(nodes, "fourth")
    for node in nodes:
        node.wait("has all durable", lambda at: len(set(at.durable.values())) == 1, patience)
    for node in nodes:
        node.kill()


def configure(path, seed):
    """Three nodes on one machine. Emulation is slow, but must not cause a node's removal."""
    with open(path, "w") as file:
        file.write(
            f'name = "power-{seed}-{os.getpid()}"\nfabric = "shm"\n'
            "heartbeat_ms = 200\nfailure_timeout_ms = 8000\n"
            + "".join(f"[[nodes]]\nid = {node}\n" for node in range(NODES))
            + '[[subgroups]]\nname = "lines"\nlogged = true\nwindow = 16\nmessage_max = 1024\n'
        )


def truth(options, disk, _config):
    """The lines of the whole recording."""
    return lines_of(options, f"{disk}/0/lines")


def reported(marks):
    """The lines that were durable: on a majority, and on each node's own disk since its last start.
    A returning node may truncate what the group does not have."""
    majority, here = 0, [0] * NODES
    for mark in marks:
        if "starts" in mark:
            here[mark["node"]] = 0
        else:
            majority = max(majority, mark["durable"]["majority"])
            here[mark["node"]] = mark["durable"]["here"]
    return majority, here


def lines_of(options, log):
    """The lines of a log, after checking it; none if the log does not exist yet."""
    if not os.path.isdir(log):
        return []

    def tell(*arguments):
        command = [options.program, "log", log, "--json", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    checked = tell("--check")
    if not checked.stdout:
        # The folder has been created, but is still empty.
        if "does not contain a log" in checked.stderr:
            return []
        raise Broken(f"log {log}: {checked.stderr.strip()}")
    for damage in json.loads(checked.stdout)["damage"]:
        # One of the two copies of the metadata may be torn, and so may the header of a segment
        # whose first batch has not been reported. No record is lost with them.
        if damage["records"] is not None:
            raise Broken(f"log {log} is damaged: {checked.stdout.strip()}")
    printed = tell()
    if printed.returncode != 0:
        raise Broken(f"log {log}: {printed.stderr.strip()}")
    return [json.loads(line)["message"]["text"] for line in printed.stdout.splitlines()]


def restart(options, config, disk):
    """Starts all nodes from their disks, lets each send one more line, and kills all. Returns the
    number of lines that each had reported durable."""
    nodes = [Node(options.program, config, node, f"{disk}/{node}") for node in range(NODES)]
    try:
        for node in nodes:
            node.wait("is in the group", lambda at: len(at.members) == NODES, 90)
            node.send(f"after the cut {node.node}")
        for node in nodes:
            for other in range(NODES):
                line = f"after the cut {other}"
                node.wait(f"delivers '{line}'", lambda at: line in at.texts, 90)
        return [node.durable.get("here", 0) for node in nodes]
    except TimeoutError as late:
        raise Broken(f"the group does not come back: {late}") from late
    finally:
        for node in nodes:
            node.kill()


def judge(options, config, disk, whole, marks):
    """Raises `Broken` if a condition is violated after a power loss."""
    majority, here = reported(marks)
    logs = [f"{disk}/{node}/lines" for node in range(NODES)]
    for node, log in enumerate(logs):
        lines = lines_of(options, log)
        if len(lines) < here[node]:
            raise Broken(f"node {node} reported {here[node]} lines, and its log has {len(lines)}")
    here = restart(options, config, disk)
    after = [lines_of(options, log) for log in logs]
    longest = max(after, key=len)
    for node, lines in enumerate(after):
        if lines != longest[: len(lines)]:
            raise Broken(f"the log of node {node} is not a prefix of the longest log")
        if len(lines) < here[node]:
            raise Broken(f"node {node} reported {here[node]} lines, and its log has {len(lines)}")
    if longest[:majority] != whole[:majority]:
        raise Broken(f"{majority} lines were durable on a majority, but some were lost or changed")
