#!/usr/bin/env python3
"""ZooKeeper: a node for each message below one parent, in the order of their creation (czxid)."""
import os
import queue
import subprocess
import sys
import time

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import replicated_log

PARENT = "/log"
PEER, ELECTION, CLIENT = 0, 1, 2
# A message's name has slashes, which ZooKeeper reserves.
SLASH = "-"
# Interval at which the children are listed even without a notification.
ASK_S = 1.0
ERRORS = (KazooException, KazooTimeoutError, OSError)


class ZooKeeper:
    name = "ZooKeeper"
    version = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", "zookeeper"],
                             capture_output=True, text=True).stdout
    features = ["crash", "restart", "durable", "pause", "suspension", "network", "several-groups",
                "order-across-groups", "outside-senders", "empty-messages", "large-messages"]

    def __init__(self, node):
        self.node = node
        self.news = queue.SimpleQueue()

    def start(self):
        if self.node.has_server():
            self.start_server()
        hosts = [self.node.name] if self.node.has_server() else self.node.present
        hosts = ",".join(self.node.endpoint(name, CLIENT) for name in hosts)
        retry = {"max_tries": -1, "delay": 0.05, "backoff": 1, "max_jitter": 0.1}
        self.client = KazooClient(hosts=hosts, timeout=8, connection_retry=retry)
        self.client.add_listener(self.connected)
        self.client.start(timeout=self.node.deadline_s)
        self.node.keep_trying(lambda: self.client.ensure_path(PARENT))

    def start_server(self):
        self.node.take_ports(3)
        data = self.node.folder("zookeeper")
        with open(os.path.join(data, "myid"), "w") as file:
            file.write(str(self.node.number))
        lines = [
            # The sample configuration of zookeeper.apache.org, "Getting Started", with a shorter
            # tick to keep the suite short.
            "tickTime=500", "initLimit=20", "syncLimit=6",
            f"dataDir={data}",
            f"clientPortAddress={self.node.address}",
            f"clientPort={self.node.ports_of(self.node.name)[CLIENT]}",
            "admin.enableServer=false", "maxClientCnxns=0",
        ]
        for name in self.node.servers:
            # All of them are started at once, or already exist.
            ports = self.node.ports_of(name)
            address, number = self.node.addresses[name], self.node.names.index(name) + 1
            lines.append(f"server.{number}={address}:{ports[PEER]}:{ports[ELECTION]}")
        path = os.path.join(self.node.storage, "zoo.cfg")
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        logging = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log4j")
        # Small and fast to start, because several servers share one machine.
        self.node.run(["java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                       "-Xshare:auto", "-cp", f"{logging}:/usr/share/java/zookeeper.jar",
                       "org.apache.zookeeper.server.quorum.QuorumPeerMain", path])

    def connected(self, state):
        replicated_log.log(f"ZooKeeper: {state}")
        if state == KazooState.CONNECTED:
            self.news.put("connected")

    def append(self, key, record):
        path = f"{PARENT}/{key.replace('/', SLASH)}"
        while True:
            try:
                self.client.create(path, record)
                return
            except NodeExistsError:
                return  # It was created before, and the answer was lost.
            except ERRORS as error:
                replicated_log.log(f"create again: {error!r}")
                time.sleep(0.05)

    def read(self):
        seen = set()
        while True:
            try:
                names = self.client.get_children(PARENT, watch=self.news.put)
                fresh = [name for name in names if name not in seen]
                asked = [self.client.get_async(f"{PARENT}/{name}") for name in fresh]
                answers = [one.get(timeout=10) for one in asked]
            except ERRORS as error:
                replicated_log.log(f"children again: {error!r}")
                time.sleep(0.05)
                continue
            # A server has the children in creation order, so these follow all those already seen.
            seen.update(fresh)
            for record, stat in sorted(answers, key=lambda answer: answer[1].czxid):
                yield stat.czxid, record
            self.await_news()

    def await_news(self):
        try:
            self.news.get(timeout=ASK_S)
            while not self.news.empty():
                self.news.get()
        except queue.Empty:
            pass


replicated_log.run(ZooKeeper)
