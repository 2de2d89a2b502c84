#!/usr/bin/env python3
"""RabbitMQ: one stream with a replica at every server, written with publisher confirms.

The adapter needs a port mapper, whose port is in `ERL_EPMD_PORT`: `run` starts one, which ends with
`run`.
"""
import glob
import os
import shutil
import subprocess
import sys
import time

import pika
from pika.exceptions import AMQPError, NackError, UnroutableError

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import replicated_log

INSTALLED = glob.glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*")[0]
STREAM = "log"
CLIENT, DISTRIBUTION = 0, 1
# Limit of messages in flight to a reader.
PREFETCH = 100
IDLE_S = 1.0
# Starting a server next to others on a busy machine takes minutes; the driver ends the wait.
PATIENCE = 20
RETRY_S = 0.5
AWAIT_MS = 20_000
COOKIE = "conformance"
CONFIGURATION = """[{rabbit, [
    {loopback_users, []},
    {cluster_nodes, {[%s], disc}},
    {cluster_formation, [{discovery_retry_interval, 100}]},
    {log, [{console, [{enabled, true}, {level, info}]}]}
]}].
"""


class RabbitMq:
    name = "RabbitMQ stream"
    version = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}",
                              "rabbitmq-server"], capture_output=True, text=True).stdout
    features = ["crash", "restart", "durable", "pause", "suspension", "several-groups",
                "order-across-groups", "outside-senders", "empty-messages", "large-messages"]

    def __init__(self, node):
        self.node = node
        self.sender = None
        self.turn = 0

    def start(self):
        if self.node.has_server():
            self.start_server()
        if self.node.name == self.node.present[0] and not self.node.join:
            self.node.keep_trying(self.await_servers, PATIENCE, RETRY_S)
            self.node.keep_trying(self.make_stream, PATIENCE, RETRY_S)
        self.node.keep_trying(self.find_stream, PATIENCE, RETRY_S)

    def environment(self):
        home = self.node.folder("rabbitmq")
        cookie = os.path.join(home, ".erlang.cookie")
        if not os.path.exists(cookie):
            with open(cookie, "w") as file:
                file.write(COOKIE)
            os.chmod(cookie, 0o400)
        client, distribution = self.node.take_ports(2)
        return os.environ | {
            "HOME": home,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP": os.path.join(home, "crash"),
            "RABBITMQ_NODENAME": server(self.node.name),
            "RABBITMQ_NODE_IP_ADDRESS": self.node.address,
            "RABBITMQ_NODE_PORT": str(client),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_BASE": home,
            "RABBITMQ_MNESIA_BASE": os.path.join(home, "mnesia"),
            "RABBITMQ_LOG_BASE": os.path.join(home, "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": os.path.join(home, "none"),
            "RABBITMQ_CONF_ENV_FILE": os.path.join(home, "none"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": os.path.join(home, "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": os.path.join(home, "plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": home,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "+S 2:2 -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def start_server(self):
        environment = self.environment()
        # As Erlang terms, which a server reads a second faster than `rabbitmq.conf`.
        servers = ", ".join(f"'{server(name)}'" for name in self.node.servers)
        with open(environment["RABBITMQ_ADVANCED_CONFIG_FILE"], "w") as file:
            file.write(CONFIGURATION % servers)
        programs = os.path.join(self.installation(), "sbin")
        self.node.run([os.path.join(programs, "rabbitmq-server")], env=environment)

    def installation(self):
        """Returns a copy of the installation without the unused plugins. A server searches their
        folders for each of its modules, which is a quarter of the work of its start."""
        home = os.path.join(self.node.storage, "installation")
        if not os.path.exists(home):
            # An incarnation that was killed may have left an incomplete copy.
            shutil.rmtree(f"{home}.new", ignore_errors=True)
            shutil.copytree(f"{INSTALLED}/sbin", f"{home}.new/sbin")
            os.mkdir(f"{home}.new/plugins")
            for part in os.listdir(f"{INSTALLED}/plugins"):
                if not part.startswith("rabbitmq_") or part.startswith("rabbitmq_prelaunch"):
                    os.symlink(f"{INSTALLED}/plugins/{part}", f"{home}.new/plugins/{part}")
            os.rename(f"{home}.new", home)
        return home

    def await_servers(self):
        """Waits until all servers serve. The stream gets its replicas at the servers that run when
        it is created. A server that the others count as running may not serve yet, and gets none.

        The call does the same as `rabbitmqctl await_online_nodes`, which takes 0.7 s of processor
        time to start."""
        for name in self.node.present:
            self.connect(name).close()
        call = f"rabbit_nodes await_running_count [{len(self.node.present)}, {AWAIT_MS}]"
        said = subprocess.run(["erl_call", "-sname", server(self.node.name), "-c", COOKIE, "-a",
                               call], check=True, capture_output=True, text=True).stdout
        if said.strip() != "ok":
            raise TimeoutError(f"servers: {said}")

    def make_stream(self):
        with self.connect() as connection:
            connection.channel().queue_declare(STREAM, durable=True, arguments={
                "x-queue-type": "stream", "x-initial-cluster-size": len(self.node.present)})

    def find_stream(self):
        """Returns whether the stream exists and has a replica here, which a reader needs."""
        with self.connect() as connection:
            channel = connection.channel()
            channel.queue_declare(STREAM, passive=True)
            if self.node.has_server():
                channel.basic_qos(prefetch_count=1)
                channel.basic_consume(STREAM, lambda *message: None,
                                      arguments={"x-stream-offset": "next"})

    def connect(self, name=None):
        hosts = [self.node.name] if self.node.has_server() else self.node.present
        self.turn += 1
        name = name or hosts[self.turn % len(hosts)]
        host, port = self.node.endpoint(name, CLIENT).split(":")
        return pika.BlockingConnection(pika.ConnectionParameters(
            host=host, port=int(port), socket_timeout=2, blocked_connection_timeout=5))

    def append(self, key, record):
        while self.sender is None:
            try:
                self.sender = self.connect().channel()
                self.sender.confirm_delivery()
            except (AMQPError, OSError) as error:
                replicated_log.log(f"connect again: {error!r}")
                self.sender = None
                time.sleep(0.1)
        try:
            self.sender.basic_publish("", STREAM, record, mandatory=True)
        except (NackError, UnroutableError) as error:
            raise replicated_log.Refused(type(error).__name__, definite=False) from error
        except (AMQPError, OSError) as error:
            # With these clients, duplicates cannot be detected.
            self.sender = None
            raise replicated_log.Refused(type(error).__name__, definite=False) from error

    def read(self):
        after = -1
        while True:
            try:
                for after, record in self.consume(after):
                    yield after, record
            except (AMQPError, OSError) as error:
                replicated_log.log(f"consume again: {error!r}")
            time.sleep(0.1)

    def consume(self, after):
        channel = self.connect().channel()
        channel.basic_qos(prefetch_count=PREFETCH)
        messages = channel.consume(STREAM, arguments={"x-stream-offset": after + 1},
                                   inactivity_timeout=IDLE_S)
        for method, properties, body in messages:
            if method is not None:
                yield properties.headers["x-stream-offset"], body
                channel.basic_ack(method.delivery_tag)


def server(name):
    """Returns the name of a node's server."""
    return f"{name}@localhost"


replicated_log.run(RabbitMq)
