#!/usr/bin/env python3
"""NATS JetStream: one stream with a replica at every server, read by ordered consumers."""
import asyncio
import os
import subprocess
import sys
import threading
import time

import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import NotFoundError

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import replicated_log

STREAM, SUBJECT = "LOG", "log"
CLUSTER, CLIENT = 0, 1
# Time without a message after which a reader asks whether its consumer still exists.
IDLE_S = 1.0
# The most replicas that a stream can have.
REPLICAS_MAX = 5


class Nats:
    name = "NATS JetStream"
    version = subprocess.run(["nats-server", "--version"], capture_output=True, text=True) \
        .stdout.split()[-1]
    features = ["crash", "restart", "durable", "pause", "suspension", "network", "several-groups",
                "order-across-groups", "outside-senders", "empty-messages", "large-messages"]

    def __init__(self, node):
        self.node = node
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def await_(self, coroutine, timeout_s=None):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout_s)

    def start(self):
        if self.node.has_server():
            self.start_server()
        self.node.keep_trying(lambda: self.await_(self.connect()))
        self.node.keep_trying(lambda: self.await_(self.have_stream()))

    def start_server(self):
        cluster, client = self.node.take_ports(2)
        routes = [f"nats://{self.node.endpoint(name, CLUSTER)}" for name in self.node.servers
                  if name != self.node.name]
        path = os.path.join(self.node.storage, "nats.conf")
        with open(path, "w") as file:
            file.write(f"""
                server_name: {self.node.name}
                listen: "{self.node.address}:{client}"
                jetstream {{ store_dir: "{self.node.folder('nats')}" }}
                cluster {{
                    name: suite
                    # Otherwise a client would also use other nodes' servers.
                    no_advertise: true
                    listen: "{self.node.address}:{cluster}"
                    routes: [{", ".join(routes)}]
                }}
            """)
        self.node.run(["nats-server", "--config", path])

    async def connect(self):
        hosts = [self.node.name] if self.node.has_server() else self.node.present
        servers = [f"nats://{self.node.endpoint(name, CLIENT)}" for name in hosts]

        async def failed(error):
            replicated_log.log(f"NATS: {error!r}")

        self.client = await nats.connect(servers, max_reconnect_attempts=-1, connect_timeout=1,
                                         reconnect_time_wait=0.1, error_cb=failed,
                                         ping_interval=2)
        self.stream = self.client.jetstream(timeout=2)

    async def have_stream(self):
        try:
            info = await self.stream.stream_info(STREAM)
        except NotFoundError:
            replicas = min(len(self.node.present), REPLICAS_MAX)
            info = await self.stream.add_stream(StreamConfig(
                name=STREAM, subjects=[SUBJECT], num_replicas=replicas))
        replicated_log.log(f"the stream: {info.cluster}")

    def append(self, key, record):
        while True:
            try:
                # A message that was stored without an acknowledgement is not stored twice.
                self.await_(self.stream.publish(SUBJECT, record, timeout=2,
                                                headers={"Nats-Msg-Id": key}))
                return
            except Exception as error:
                replicated_log.log(f"publish again: {error!r}")
                time.sleep(0.05)

    def read(self):
        """Reads with an ordered consumer, which restarts after a gap or if its server is gone."""
        after = 0
        while True:
            try:
                subscription, received = self.await_(self.subscribe(after)), 0
                while True:
                    message = self.await_(self.next_of(subscription))
                    if message is None:
                        continue
                    sequence = message.metadata.sequence
                    if sequence.consumer != received + 1:
                        replicated_log.log(f"a gap: {sequence.consumer} after {received}")
                        break
                    after, received = sequence.stream, sequence.consumer
                    yield after, message.data
            except Exception as error:
                replicated_log.log(f"subscribe again: {error!r}")
                time.sleep(0.1)

    async def subscribe(self, after):
        config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                                opt_start_seq=after + 1, ack_policy=AckPolicy.NONE,
                                mem_storage=True, num_replicas=1, max_deliver=1)
        return await self.stream.subscribe(SUBJECT, stream=STREAM, config=config)

    async def next_of(self, subscription):
        try:
            return await subscription.next_msg(timeout=IDLE_S)
        except nats.errors.TimeoutError:
            # This raises an error if the consumer no longer exists.
            await subscription.consumer_info()
            return None


replicated_log.run(Nats)
