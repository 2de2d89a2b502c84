"""A group of durable shards whose power is cut (see `power`): three replicas and a client on one
machine. The client's lines are numbered, and each must be in the logs if it was answered."""

import json
import os
import subprocess
import threading
import time

from power_marks import Broken

REPLICAS = ["g1.0", "g1.1", "g1.2"]
# Long lines, so that snapshots are due within the recording.
LINE_BYTES = 4000


def configure(path, seed):
    """Emulation is slow, but must not cause another leader."""
    with open(path, "w") as file:
        file.write(
            f'name = "power-{seed}-{os.getpid()}"\nfabric = "shm"\ndurable = true\n'
            "heartbeat_ms = 200\nfailure_timeout_ms = 8000\nclient_lease_ms = 60000\n"
            "log_entries = 64\nmessage_max = 4096\n"
            '[[groups]]\nname = "g1"\nreplicas = 3\n'
        )


class Replica:
    """A replica, whose log of lines is a file outside the disk."""

    def __init__(self, options, config, name, data, logs):
        self.log = f"{logs}/{name}"
        command = [options.program, "shards", "--config", config, "--id", name]
        command += ["--data", data, "--data-keep-mb", "1", "--log", self.log]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)

    def lines(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            texts = [line.split(" ", 3)[3] for line in file if line.endswith("\n")]
            return [text.rstrip(".\n") for text in texts]

    def kill(self):
        self.process.kill()
        self.process.wait()


class Client:
    """A client, which marks each answered line."""

    def __init__(self, options, config, marks=None):
        self.sent, self.answered, self.marks = 0, 0, marks
        self.changed = threading.Condition()
        command = [options.program, "shards", "send", "--config", config, "--to", "g1"]
        command += ["--time-limit", "600"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for _ in self.process.stdout:
            with self.changed:
                self.answered += 1
                if self.marks:
                    self.marks.write({"answered": self.answered})
                self.changed.notify_all()

    def send(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        self.sent += 1

    def wait(self, seconds):
        until = time.monotonic() + seconds
        with self.changed:
            while self.answered < self.sent:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise TimeoutError(f"{self.answered} of {self.sent} lines are answered")
                self.changed.wait(0.5)


def start_all(options, config, disk, logs):
    os.makedirs(logs, exist_ok=True)
    return [Replica(options, config, name, disk, logs) for name in REPLICAS]


def record(options, mounted, marks):
    """The run whose writes are recorded. It takes place in the guest, as root."""
    config, logs = options.config, "/tmp/power-logs"
    replicas = start_all(options, config, mounted, logs)
    client = Client(options, config, marks)

    def feed():
        for _ in range(3 * options.lines):
            client.send(str(client.sent).ljust(LINE_BYTES, "."))
            time.sleep(0.02)

    feed()
    client.wait(240)
    replicas[2].kill()
    feed()
    client.wait(240)
    replicas[2] = Replica(options, config, REPLICAS[2], mounted, logs)
    feed()
    for replica in replicas:
        replica.kill()
    replicas = start_all(options, config, mounted, logs)
    feed()
    client.wait(240)
    for replica in replicas:
        replica.kill()
    client.process.kill()


def statuses(options, config):
    command = [options.program, "shards", "status", "--config", config, "--json"]
    printed = subprocess.run(command, capture_output=True, text=True).stdout
    found = json.loads(printed)["replicas"] if printed else []
    return [(replica["status"] or {}).get("state") for replica in found]


def restart(options, config, disk, logs):
    """Starts all replicas from their disks, and sends one more line. Returns the lines of the logs,
    which must be equal."""
    replicas = start_all(options, config, disk, logs)
    client = None
    try:
        until = time.monotonic() + 90
        while not all(state in ("leading", "following") for state in statuses(options, config)):
            ended = [one for one in replicas if one.process.poll() is not None]
            if ended or time.monotonic() > until:
                why = [one.process.stderr.read().decode() for one in ended]
                raise Broken(f"the group does not come back: {why or 'too late'}")
            time.sleep(0.05)
        client = Client(options, config)
        client.send("after")
        client.wait(90)
        while not all(one.lines()[-1:] == ["after"] for one in replicas):
            if time.monotonic() > until:
                raise Broken("a replica lacks the line after the cut")
            time.sleep(0.02)
        logs = [one.lines() for one in replicas]
        if any(log != logs[0] for log in logs):
            raise Broken("the logs differ")
        return logs[0][:-1]
    except TimeoutError as late:
        raise Broken(f"the group does not answer: {late}") from late
    finally:
        for one in [*replicas, *([client] if client else [])]:
            process = one.process
            process.kill()
            process.wait()


def fresh_logs(config):
    """A folder for the logs of one restart, beside the overlay file."""
    return f"{os.path.dirname(config)}/logs-{time.monotonic_ns()}"


def truth(options, disk, config):
    """The lines of the whole recording."""
    return restart(options, config, disk, fresh_logs(config))


def judge(options, config, disk, _whole, marks):
    """Raises `Broken` if a condition is violated after a power loss."""
    answered = marks[-1]["answered"] if marks else 0
    lines = restart(options, config, disk, fresh_logs(config))
    for number, line in enumerate(lines):
        if line != str(number):
            raise Broken(f"line {number} is {line}")
    if len(lines) < answered:
        raise Broken(f"{answered} lines were answered, and the logs have {len(lines)}")
