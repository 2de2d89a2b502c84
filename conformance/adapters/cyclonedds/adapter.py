#!/usr/bin/env python3
"""Cyclone DDS: a topic for each group, with a reliable writer and reader at each of its nodes.

There is no server. Each record is a sample, and readers see each writer's samples in its order.
"""
import hashlib
import importlib.metadata
import os
import sys
import time
from dataclasses import dataclass

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import replicated_log

# Only loopback, without multicast. This must be set before the library is loaded.
os.environ["CYCLONEDDS_URI"] = """<CycloneDDS><Domain>
<General><Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General>
<Discovery><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>40</MaxAutoParticipantIndex>
<Peers><Peer address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>"""

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState
from cyclonedds.core import WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import sequence, uint8
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

# How long a writer without room waits for an acknowledgement before it refuses.
BLOCKED_S_MAX = 60
# Domains that a run chooses from; each has separate ports.
DOMAINS = 200
# Limit of samples taken at once.
TAKEN_MAX = 256
IDLE_S = 0.2


@dataclass
class Sample(IdlStruct, typename="Sample"):
    record: sequence[uint8]


class CycloneDds:
    name = "Cyclone DDS"
    version = importlib.metadata.version("cyclonedds")
    features = ["crash", "leave", "pause", "suspension", "several-groups", "outside-senders",
                "empty-messages", "large-messages"]

    def __init__(self, node):
        self.node = node
        digest = hashlib.sha256(node.shared.encode()).digest()
        self.participant = DomainParticipant(1 + digest[0] % DOMAINS)
        self.quality = Qos(Policy.Reliability.Reliable(duration(seconds=BLOCKED_S_MAX)),
                           Policy.History.KeepAll, Policy.Durability.Volatile)
        self.writers, self.readers = {}, []

    def start(self):
        """Waits until each writer knows all readers, and each reader all writers."""
        for group, of in self.node.groups_of_all.items():
            topic = Topic(self.participant, group, Sample, qos=self.quality)
            if self.node.name in of["all_members"]:
                reader = DataReader(self.participant, topic, qos=self.quality)
                self.readers.append(reader)
            if self.node.name in of["senders"]:
                writer = DataWriter(self.participant, topic, qos=self.quality)
                self.writers[group] = writer
        for group, writer in self.writers.items():
            members = self.node.groups_of_all[group]["members"]
            self.await_matches(len(members), writer.get_matched_subscriptions)
        for group, reader in zip(self.node.groups, self.readers):
            senders = self.node.groups_of_all[group]["senders"]
            self.await_matches(len(senders), reader.get_matched_publications)

    def await_matches(self, count, matches):
        until = time.monotonic() + self.node.deadline_s / 2
        while count_of(matches) < count and time.monotonic() < until:
            time.sleep(0.02)

    def append(self, key, record):
        group = replicated_log.groups_of(record)[0]
        try:
            self.writers[group].write(Sample(record=list(record)))
        except Exception as error:
            raise replicated_log.Refused(repr(error), definite=False) from error

    def read(self):
        waiting = WaitSet(self.participant)
        for reader in self.readers:
            states = SampleState.NotRead | ViewState.Any | InstanceState.Any
            waiting.attach(ReadCondition(reader, states))
        place = 0
        while True:
            waiting.wait(duration(seconds=IDLE_S))
            for reader in self.readers:
                for sample in reader.take(TAKEN_MAX):
                    if isinstance(sample, Sample):
                        place += 1
                        yield place, bytes(sample.record)

    def leave(self):
        for writer in self.writers.values():
            writer.wait_for_acks(duration(seconds=BLOCKED_S_MAX))


def count_of(matches):
    """Returns the number of matches. The package asks for a count and then for a list of that
    length, and raises an error if another match arrives in between."""
    try:
        return len(matches())
    except IndexError:
        return 0


replicated_log.run(CycloneDds)
