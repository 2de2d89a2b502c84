"""Drives tramontane-redis with redis-cli, redis-benchmark and redis-py, and compares it with a real
redis-server.

`check` beside this file installs what is missing, and runs this.
"""

import argparse
import atexit
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import redis

PARTS = ["cli", "python", "same"]


STARTED = []


@atexit.register
def kill_all():
    """Kills what a part that failed has left."""
    for process in STARTED:
        process.kill()


def free_port():
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Group:
    """Three nodes of tramontane-redis."""

    def __init__(self, program, options=()):
        self.folder = tempfile.mkdtemp()
        example = subprocess.check_output([program, "--example-config"], text=True)
        config = example.replace('name = "redis"', f'name = "check-{os.getpid()}-{id(self)}"', 1)
        with open(f"{self.folder}/redis.toml", "w") as file:
            file.write(config)
        self.program, self.options = os.path.abspath(program), list(options)
        self.ports = [free_port() for _ in range(3)]
        self.nodes = [self.spawn(node) for node in range(3)]
        self.wait()

    def spawn(self, node):
        command = [self.program, "--config", "redis.toml", "--id", str(node)]
        command += ["--state", f"state-{node}", "--listen", f"127.0.0.1:{self.ports[node]}"]
        log = open(f"{self.folder}/errors-{node}", "a")
        node = subprocess.Popen(command + self.options, cwd=self.folder, stderr=log)
        STARTED.append(node)
        return node

    def wait(self):
        for port in self.ports:
            wait_for(port)

    def restart(self, node):
        self.nodes[node].kill()
        self.nodes[node].wait()
        self.nodes[node] = self.spawn(node)
        wait_for(self.ports[node])

    def end(self):
        for node in self.nodes:
            node.send_signal(signal.SIGTERM)
        statuses = [node.wait(30) for node in self.nodes]
        errors = "".join(open(f"{self.folder}/errors-{node}").read() for node in range(3))
        shutil.rmtree(self.folder)
        return statuses, errors


class Redis:
    """A redis-server."""

    def __init__(self):
        self.folder, self.port = tempfile.mkdtemp(), free_port()
        command = ["redis-server", "--port", str(self.port), "--save", "", "--daemonize", "no"]
        command += ["--dir", self.folder, "--logfile", "log"]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        STARTED.append(self.server)
        wait_for(self.port)

    def end(self):
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder)


def wait_for(port):
    """Waits until a server answers."""
    for _ in range(600):
        try:
            if redis.Redis(port=port, protocol=2).ping():
                return
        except redis.RedisError:
            time.sleep(0.05)
    sys.exit(f"no server at port {port}")


def cli(port, *words):
    """What redis-cli prints."""
    return subprocess.check_output(["redis-cli", "-p", str(port), *words], text=True).strip()


def expect(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{what}: {seen!r}, not {wanted!r}")


def check_cli(program):
    group = Group(program)
    first, second, third = group.ports
    expect("SET", cli(first, "set", "colour", "red"), "OK")
    expect("GET elsewhere", cli(third, "get", "colour"), "red")
    expect("INCR", [cli(port, "incr", "n") for port in group.ports], ["1", "2", "3"])
    expect("an unknown command", cli(second, "nonsense")[:19], "ERR unknown command")
    for number in range(100):
        cli(first, "set", f"key:{number}", "v")
    scanned = cli(second, "--scan", "--pattern", "key:*").split()
    expect("--scan", len(set(scanned)), 100)
    big = subprocess.run(["redis-cli", "-p", str(first), "--bigkeys"], capture_output=True)
    expect("--bigkeys", big.returncode, 0)
    piped = "".join(f"SET piped:{number} {number}\r\n" for number in range(5000))
    out = subprocess.run(["redis-cli", "-p", str(first), "--pipe"], input=piped, text=True,
                         capture_output=True).stdout
    expect("--pipe", "errors: 0, replies: 5000" in out, True)
    group.restart(1)
    expect("after a kill", cli(second, "get", "piped:4999"), "4999")
    expect("DBSIZE", cli(second, "dbsize"), "5102")
    load = ["redis-benchmark", "-p", str(first), "-t", "set,get,incr", "-P", "16", "-n", "2000"]
    rates = subprocess.check_output([*load, "-q"], text=True)
    expect("redis-benchmark", rates.count("requests per second"), 3)
    statuses, errors = group.end()
    expect("the end", statuses, [0, 0, 0])
    print("cli: every node answered redis-cli, a killed node returned with all keys")


def check_python(program):
    group = Group(program, options=["--clients-max", "10100"])
    clients = [redis.Redis(port=port, protocol=2, decode_responses=True) for port in group.ports]
    a, b, c = clients
    a.set("k", "v", ex=100)
    expect("ttl", b.ttl("k"), 100)
    with a.pipeline() as pipe:
        expect("a transaction", pipe.set("n", 1).incr("n").get("n").execute(), [True, 2, "2"])
    with a.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.rpush("list", number)
        expect("a pipeline", pipe.execute(), list(range(1, 1001)))
    expect("lrange", c.lrange("list", 0, -1), [str(number) for number in range(1000)])
    a.hset("hash", mapping={"f": 1, "g": "two"})
    expect("hgetall", b.hgetall("hash"), {"f": "1", "g": "two"})
    a.zadd("sorted", {"x": 1.5, "y": -2})
    expect("zrange", c.zrange("sorted", 0, -1, withscores=True), [("y", -2.0), ("x", 1.5)])
    a.sadd("set", *range(50))
    expect("smembers", b.smembers("set"), {str(number) for number in range(50)})
    expect("scan_iter", len(set(a.scan_iter(count=3))), 6)
    expect("info", b.info()["connected_slaves"], 2)

    def add_all():
        for number in range(200):
            c.transaction(lambda pipe: add_one(pipe), "watched")

    def add_one(pipe):
        value = int(pipe.get("watched") or 0)
        pipe.multi()
        pipe.set("watched", value + 1)

    threads = [threading.Thread(target=add_all) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    expect("optimistic transactions", a.get("watched"), "800")

    subscriber = b.pubsub()
    subscriber.subscribe("news")
    expect("subscribe", subscriber.get_message(timeout=5)["type"], "subscribe")
    for number in range(100):
        c.publish("news", number)
    news = [subscriber.get_message(timeout=5)["data"] for _ in range(100)]
    expect("messages", news, [str(number) for number in range(100)])

    resource.setrlimit(resource.RLIMIT_NOFILE, (12000, 12000))
    sockets = [socket.create_connection(("127.0.0.1", group.ports[0])) for _ in range(10000)]
    for number, client in enumerate(sockets):
        client.sendall(b"INCR many\r\nSET s:%d x\r\n" % number)
    for client in sockets:
        reply = b""
        while not reply.endswith(b"+OK\r\n"):
            reply += client.recv(100)
    expect("10,000 clients", a.get("many"), "10000")
    memory = int(open(f"/proc/{group.nodes[0].pid}/statm").read().split()[1]) * 4096
    print(f"python: redis-py, and 10,000 clients at one node with {memory >> 20} MB resident")
    [client.close() for client in sockets]
    expect("the end", group.end()[0], [0, 0, 0])


KEYS = ["a", "b", "c", "d", "e", "f"]
WORDS = {
    "k": KEYS,
    "v": ["x", "y", "", "1", "-5", "7.5", "hello"],
    "n": ["-3", "-2", "-1", "0", "1", "2", "3", "x"],
    "s": ["-1", "0", "1.5", "2", "(1", "inf", "-inf", "x"],
    "m": ["p", "q", "r", "s"],
}
SHAPES = """
SET k v|SET k v NX|SET k v XX GET|SET k v EX 100|SET k v KEEPTTL|SET k|SET k v EX n|GET k|APPEND k v
STRLEN k|GETRANGE k n n|SETRANGE k n v|INCR k|DECRBY k n|INCRBYFLOAT k s|DEL k k|EXISTS k k|TYPE k
EXPIRE k 100|EXPIRE k n|EXPIRE k 100 NX|EXPIRE k 50 GT|TTL k|PERSIST k|RENAME k k|RENAMENX k k
GETSET k v|GETDEL k|SETNX k v|MGET k k|MSET k v k v|MSETNX k v k v|MSET k v k
RPUSH k v v|LPUSH k v|LPUSHX k v|RPUSHX k v|LPOP k|RPOP k n|LRANGE k n n|LREM k n v|LTRIM k n n
LINDEX k n|LLEN k|LSET k n v|LINSERT k BEFORE v v|LINSERT k AFTER v v|RPOPLPUSH k k
LMOVE k k LEFT RIGHT|LPOS k v|LPOS k v RANK n COUNT 0
HSET k m v|HSET k m v m v|HSETNX k m v|HGET k m|HMGET k m m|HDEL k m m|HEXISTS k m|HLEN k
HINCRBY k m n|HINCRBYFLOAT k m s|HSTRLEN k m|HGETALL k|HKEYS k
SADD k m m|SREM k m|SISMEMBER k m|SMISMEMBER k m m|SCARD k|SMOVE k k m|SINTERSTORE k k k
SUNIONSTORE k k k|SDIFFSTORE k k k|SMEMBERS k|SINTER k k|SUNION k k|SDIFF k k
ZADD k s m s m|ZADD k NX s m|ZADD k XX CH s m|ZADD k GT s m|ZADD k LT CH s m|ZADD k INCR s m
ZADD k GT INCR s m|ZREM k m|ZSCORE k m|ZMSCORE k m m|ZINCRBY k s m|ZCARD k|ZCOUNT k s s|ZRANK k m
ZREVRANK k m|ZRANGE k n n|ZRANGE k n n WITHSCORES|ZREVRANGE k n n|ZRANGE k s s BYSCORE
ZRANGE k s s BYSCORE REV LIMIT 0 2|ZRANGEBYSCORE k s s|ZRANGEBYSCORE k s s LIMIT 1 n
ZREVRANGEBYSCORE k s s|ZREMRANGEBYSCORE k s s|ZREMRANGEBYRANK k n n|ZPOPMIN k|ZPOPMAX k n
""".replace("\n", "|").strip("|").split("|")
UNORDERED = ("HGETALL", "HKEYS", "SMEMBERS", "SINTER", "SUNION", "SDIFF")


def check_same(program):
    group, other = Group(program), Redis()
    seed = int(time.time())
    chance = random.Random(seed)
    def connect(port):
        return redis.Redis(port=port, protocol=2, single_connection_client=True)

    here, there = [connect(port) for port in group.ports], connect(other.port)

    def ask(client, words):
        connection = client.connection
        connection.send_command(*words)
        try:
            return connection.read_response()
        except redis.ResponseError as error:
            # The words of errors are Redis' own only as far as clients look at them.
            return "error", str(error).split()[0] if str(error).isupper() else type(error).__name__

    counts, different = {}, {}
    for turn in range(20000):
        words = [chance.choice(WORDS.get(word, [word])) for word in chance.choice(SHAPES).split()]
        ours, theirs = ask(here[turn % 3], words), ask(there, words)
        if words[0] in UNORDERED and isinstance(ours, list) and isinstance(theirs, list):
            step = 2 if words[0] == "HGETALL" else 1
            pairs = [sorted(zip(*[iter(reply)] * step)) for reply in (ours, theirs)]
            ours, theirs = pairs
        if ours != theirs:
            different.setdefault(words[0], f"{words}: {ours!r} here, {theirs!r} at redis-server")
            # The keys may differ from now on.
            ask(here[0], ["FLUSHALL"]), ask(there, ["FLUSHALL"])
        counts[words[0]] = counts.get(words[0], 0) + (not isinstance(ours, tuple))
    if different:
        sys.exit("\n".join([f"same: seed {seed}", *different.values()]))
    never = [name for name, count in counts.items() if count == 0]
    expect("commands that were always refused", never, [])
    print(f"same: 20,000 random commands got the replies of redis-server (seed {seed})")
    group.end()
    other.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    arguments = parser.parse_args()
    for part in arguments.parts or PARTS:
        if part not in PARTS:
            parser.error(f"{part} is none of {', '.join(PARTS)}")
    parts = arguments.parts or PARTS
    if "cli" in parts:
        check_cli(arguments.program)
    if "python" in parts:
        check_python(arguments.program)
    if "same" in parts:
        check_same(arguments.program)


if __name__ == "__main__":
    main()
