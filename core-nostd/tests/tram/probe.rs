//! Helpers with which tests inspect a world and its memory, and change it.

use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_core::tram::{LinkId, MessageId, ReplicaId, Shape};

use super::world::{RunningReplica, World};

/// Index of a header's seal among its cells.
const SEAL: usize = 7;

impl World {
    pub fn leader(&self, group: GroupId) -> Option<ReplicaId> {
        let of_group = self.replicas.iter().filter(|(id, _)| id.group == group);
        let leading = of_group.filter(|(_, running)| running.replica.is_leader());
        leading.max_by_key(|(_, running)| running.replica.promised()).map(|(id, _)| *id)
    }

    /// Returns whether a group may lose a replica: the other voters still form a quorum.
    pub fn may_crash(&self, id: ReplicaId) -> bool {
        let counts = |(other, running): &(&ReplicaId, &RunningReplica)| {
            other.group == id.group && **other != id && running.replica.is_voter()
        };
        let counting = self.replicas.iter().filter(counts).count();
        counting >= usize::from(self.overlay.quorum(id.group)) && self.replicas.contains_key(&id)
    }

    /// Returns the stamp, tail and decided count of a replica's log.
    pub fn log_control(&self, id: ReplicaId) -> [u64; 3] {
        let Some(running) = self.replicas.get(&id) else { return [0; 3] };
        let log = Row::from_lines(&running.memory.log);
        [0, 8, 16].map(|at| log.cell(at).map_or(0, |cell| cell.load()))
    }

    /// Returns whether reads of payloads into a replica's log are in flight.
    pub fn reads_payloads(&self, id: ReplicaId) -> bool {
        self.payloads_read(id) > 0
    }

    /// Returns the number of such reads.
    pub fn payloads_read(&self, id: ReplicaId) -> usize {
        self.network.borrow().reads_in_place(self.process_of(id).expect("it runs"))
    }

    /// Returns the message that is named by the header at a position of a replica's log, in a group
    /// without children.
    pub fn ordered_at(&self, id: ReplicaId, place: u64) -> Option<MessageId> {
        let log = Row::from_lines(&self.replicas[&id].memory.log);
        let at = 64 + 64 * (place % u64::from(self.settings.log_entries)) as usize;
        let cell = |offset: usize| log.cell(at + offset).map_or(0, |cell| cell.load());
        let (mark, party, number) = (cell(0), cell(24), cell(32));
        let client = ClientNumber((party & 0xffff) as u16);
        let incarnation = (party >> 32) as u32;
        (mark == place + 1).then_some(MessageId { client, incarnation, number })
    }

    /// Returns whether the bytes of a message are anywhere in a replica's log.
    pub fn has_bytes(&self, id: ReplicaId, message: MessageId) -> bool {
        let log = Row::from_lines(&self.replicas[&id].memory.log);
        let shape = Shape::of(self.overlay, id.group);
        let mut bytes = vec![0; shape.log_bytes() & !63];
        log.read(0, &mut bytes).expect("in the log");
        let payload = &self.sent[&message].payload;
        bytes.windows(payload.len()).any(|window| window == payload)
    }

    /// Removes the name of the body that a replica's log keeps for a position. Each name has a
    /// line, after the headers, which begin the same way.
    pub fn forget_body(&self, id: ReplicaId, place: u64) {
        let log = RowWriter::from_lines(&self.replicas[&id].memory.log);
        let bytes = Shape::of(self.overlay, id.group).log_bytes();
        let cell = |offset: usize| log.cell(offset).expect("in the log");
        let begins = |offset: &usize| cell(*offset).load() == place + 1;
        let name = (0..bytes / 64).rev().map(|line| 64 * line).find(begins);
        cell(name.expect("a name")).publish(0);
    }

    /// Returns whether a replica has delivered a message.
    pub fn has_delivered(&self, id: ReplicaId, message: MessageId) -> bool {
        self.histories[&id].messages.iter().any(|(_, other)| *other == message)
    }

    /// Changes a cell of a replica's log, as a process with permission to write to it could.
    pub fn poke_log(&mut self, id: ReplicaId, offset: usize, change: impl Fn(u64) -> u64) {
        let Some(running) = self.replicas.get(&id) else { return };
        if let Ok(cell) = RowWriter::from_lines(&running.memory.log).cell(offset) {
            cell.publish(change(cell.load()));
        }
    }

    /// Returns a cell of the row that a replica publishes to a link's peer.
    pub fn shown(&self, id: ReplicaId, link: LinkId, offset: usize) -> u64 {
        let rows = self.replicas[&id].memory.links[link.index()].as_ref().expect("connected");
        Row::from_lines(&rows.own).cell(offset).expect("in the row").load()
    }

    /// Returns the offset, in a replica's log, of the copied header for a position of a peer's log,
    /// in a group without children.
    pub fn copied_header_at(&self, id: ReplicaId, peer: ReplicaId, place: u64) -> usize {
        let entries = self.settings.log_entries as usize;
        let payloads = 64 + 64 * entries;
        let payload = (self.settings.payload_max as usize).next_multiple_of(64);
        let copy = payloads + entries * payload + usize::from(peer.rank.0) * payloads;
        copy + self.header_at(id, place)
    }

    /// Recomputes the seal of the header at a position of a replica's log.
    pub fn seal(&mut self, id: ReplicaId, place: u64) {
        let at = self.header_at(id, place);
        let cells = 8 + usize::from(self.overlay.children_count(id.group));
        let log = Row::from_lines(&self.replicas[&id].memory.log);
        let sealed = (0..cells).filter(|cell| *cell != SEAL).map(|cell| at + 8 * cell);
        let seal = sealed.fold(0xcbf2_9ce4_8422_2325_u64, |seal, offset| {
            let cell = log.cell(offset).map_or(0, |cell| cell.load());
            (seal ^ cell).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        self.poke_log(id, at + 8 * SEAL, |_| seal);
    }

    /// Returns the offset of a position's header in a replica's log.
    pub fn header_at(&self, id: ReplicaId, place: u64) -> usize {
        let cells = 8 + usize::from(self.overlay.children_count(id.group));
        let index = (place % u64::from(self.settings.log_entries)) as usize;
        64 + index * (cells * 8).next_multiple_of(64)
    }

    /// Publishes a value in a cell of the row that a replica publishes to a client.
    pub fn poke_client(&mut self, number: ClientNumber, link: LinkId, offset: usize, value: u64) {
        let Some(running) = self.clients.get(&number) else { return };
        let Some(Some(rows)) = running.memory.links.get(link.index()) else { return };
        if let Ok(cell) = RowWriter::from_lines(&rows.copy).cell(offset) {
            cell.publish(value);
        }
    }

    /// Publishes a value in a cell of the row that a link's peer publishes to a replica.
    pub fn poke(&mut self, id: ReplicaId, link: LinkId, offset: usize, value: u64) {
        let Some(running) = self.replicas.get(&id) else { return };
        let Some(Some(rows)) = running.memory.links.get(link.index()) else { return };
        if let Ok(cell) = RowWriter::from_lines(&rows.copy).cell(offset) {
            cell.publish(value);
        }
    }
}
