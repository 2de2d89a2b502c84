#!/usr/bin/env python3
"""etcd: a key for each message under one prefix, and a watch on that prefix.

The adapter uses etcd's JSON gateway, so it needs only the standard library.
"""
import base64
import http.client
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import replicated_log

PREFIX, PREFIX_END = b"m/", b"m0"
# The server answers after 7 s if it cannot commit a request.
TIMEOUT_S = 8
PEER, CLIENT = 0, 1


def text(raw):
    return base64.b64encode(raw).decode()


class Etcd:
    name = "etcd"
    version = subprocess.run(["etcd", "--version"], capture_output=True, text=True) \
        .stdout.split("\n")[0].split(": ")[-1]
    features = ["crash", "leave", "join", "restart", "durable", "pause", "suspension", "network",
                "several-groups", "order-across-groups", "outside-senders", "empty-messages",
                "large-messages"]

    def __init__(self, node):
        self.node = node
        self.connection = None
        self.turn = 0
        self.data = os.path.join(node.storage, "etcd")

    def start(self):
        if self.node.has_server():
            self.start_server()
        self.node.keep_trying(self.ready)

    def start_server(self):
        peer, client = self.node.take_ports(2)
        peer, client = (f"http://{self.node.address}:{port}" for port in (peer, client))
        command = ["etcd", "--name", self.node.name, "--data-dir", self.data,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--listen-client-urls", client, "--advertise-client-urls", client,
                   "--log-level", "warn", "--logger", "zap"]
        if not os.path.exists(self.data):
            command += self.join(peer) if self.node.join \
                else ["--initial-cluster", self.first_cluster(), "--initial-cluster-state", "new"]
        self.node.run(command)

    def first_cluster(self):
        endpoints = [(name, self.node.endpoint(name, PEER)) for name in self.node.present]
        return ",".join(f"{name}=http://{endpoint}" for name, endpoint in endpoints)

    def join(self, peer):
        try:
            return self.node.keep_trying(lambda: self.add_itself(peer))
        except ValueError as error:
            # Documented: no member is added while another is down, until that one is removed.
            if "unhealthy cluster" in str(error):
                raise replicated_log.Unsupported(f"a member added now: {error}") from error
            raise

    def add_itself(self, peer):
        """Adds this node to a running cluster, and returns how its server begins."""
        others = [name for name in self.node.present if name != self.node.name]
        self.turn += 1
        other = self.node.endpoint(others[self.turn % len(others)], CLIENT)
        members = self.ask("/v3/cluster/member/list", {}, other)["members"]
        if not any(peer in one["peerURLs"] for one in members):
            added = self.ask("/v3/cluster/member/add", {"peerURLs": [peer]}, other)
            members = added["members"]
        urls = [(one.get("name", self.node.name), url) for one in members
                for url in one["peerURLs"]]
        cluster = ",".join(f"{name}={url}" for name, url in urls)
        return ["--initial-cluster", cluster, "--initial-cluster-state", "existing"]

    def ready(self):
        """Reads with the agreement of the cluster."""
        self.request("/v3/kv/range", {"key": text(b"ready")})

    def append(self, key, record):
        key = text(PREFIX + key.encode())
        body = {
            # A request that was committed without an answer is not committed twice.
            "compare": [{"key": key, "target": "CREATE", "result": "EQUAL",
                         "create_revision": "0"}],
            "success": [{"requestPut": {"key": key, "value": text(record)}}],
        }
        while True:
            try:
                self.request("/v3/kv/txn", body)
                return
            except (OSError, http.client.HTTPException, ValueError) as error:
                replicated_log.log(f"append again: {error!r}")
                time.sleep(0.05)

    def read(self):
        after = 0
        while True:
            try:
                for after, record in self.watch(after):
                    yield after, record
            except (OSError, http.client.HTTPException, ValueError) as error:
                replicated_log.log(f"watch again: {error!r}")
            time.sleep(0.05)

    def watch(self, after):
        host, port = self.node.endpoint(self.node.name, CLIENT).split(":")
        connection = http.client.HTTPConnection(host, int(port))
        create = {"key": text(PREFIX), "range_end": text(PREFIX_END),
                  "start_revision": str(after + 1)}
        connection.request("POST", "/v3/watch", json.dumps({"create_request": create}))
        for line in connection.getresponse():
            for event in json.loads(line)["result"].get("events", []):
                pair = event["kv"]
                yield int(pair["mod_revision"]), base64.b64decode(pair["value"])

    def leave(self):
        members = self.request("/v3/cluster/member/list", {})["members"]
        own = next((one["ID"] for one in members if one.get("name") == self.node.name), None)
        if own is not None:
            try:
                self.request("/v3/cluster/member/remove", {"ID": own})
            except (OSError, http.client.HTTPException, ValueError) as error:
                # The server may end before it answers.
                replicated_log.log(f"removed: {error!r}")

    def clean(self):
        """Removes a member's log, which takes at least 64 MB even if it is nearly empty."""
        shutil.rmtree(self.data, ignore_errors=True)

    def request(self, path, body):
        """Sends a request to this node's server or, for a client, to one server after the other."""
        if self.node.has_server():
            return self.ask(path, body, self.node.endpoint(self.node.name, CLIENT))
        name = self.node.present[self.turn % len(self.node.present)]
        try:
            return self.ask(path, body, self.node.endpoint(name, CLIENT))
        except Exception:
            self.turn += 1
            raise

    def ask(self, path, body, endpoint):
        if self.connection is None or self.connection[0] != endpoint:
            host, port = endpoint.split(":")
            connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)
            self.connection = (endpoint, connection)
        connection = self.connection[1]
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read())
        except Exception:
            connection.close()
            self.connection = None
            raise
        if response.status != 200:
            raise ValueError(answer.get("error", answer))
        return answer


replicated_log.run(Etcd)
