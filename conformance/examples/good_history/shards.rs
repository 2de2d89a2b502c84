//! Valid histories of disjoint groups of replicas, and of clients, which are members of no group.
//!
//! Clients send in turn. A message's number determines its set of groups. Replicas deliver in one
//! order, and some lag by a few messages.

use std::io::{self, Write};

/// The shape of such a history.
#[derive(Clone, Copy, Debug)]
pub struct Shards {
    /// Approximate number of deliveries.
    pub deliveries: u64,
    /// Number of groups.
    pub groups: u32,
    /// Number of replicas per group.
    pub replicas: u32,
    /// Number of clients.
    pub clients: u32,
    /// Whether the first replica of each group is killed after a fifth of the history, and comes
    /// back at once with the state of its group.
    pub kills: bool,
    /// Two messages that the last group delivers in exchanged positions: the defect of the history,
    /// if it has one.
    pub exchanged: Option<(u64, u64)>,
}

/// Lag from each replica to the next, in messages.
const LAG: u64 = 5;

const STEP_NS: u64 = 1_000;

/// Writes a history of this shape.
///
/// # Errors
/// Fails with the error of the stream.
pub fn write(shards: &Shards, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, r#"{{"ev":"run","version":1,"scenario":"made","seed":1}}"#)?;
    let clients: Vec<String> = (0..shards.clients).map(|client| format!("\"c{client}\"")).collect();
    for group in 0..shards.groups {
        let members: Vec<String> =
            shards.members(group).map(|node| format!("\"n{node}\"")).collect();
        let (members, senders) = (members.join(","), clients.join(","));
        writeln!(
            out,
            r#"{{"ev":"group","group":"g{group}","members":[{members}],"senders":[{senders}]}}"#
        )?;
    }
    let nodes = shards.groups * shards.replicas;
    for node in 0..nodes {
        writeln!(out, r#"{{"ev":"start","t_ns":0,"node":"n{node}","inc":1}}"#)?;
    }
    for client in 0..shards.clients {
        writeln!(out, r#"{{"ev":"start","t_ns":0,"node":"c{client}","inc":1}}"#)?;
    }
    let messages = shards.messages();
    let last_step = messages + LAG * u64::from(nodes);
    for step in 0..last_step {
        if step < messages {
            shards.multicast(step, out)?;
        }
        for node in 0..nodes {
            shards.step(node, step, out)?;
        }
    }
    let t_ns = last_step * STEP_NS;
    for node in 0..nodes {
        let inc = shards.inc(node, last_step);
        writeln!(
            out,
            r#"{{"ev":"end","t_ns":{t_ns},"node":"n{node}","inc":{inc},"reason":"done"}}"#
        )?;
    }
    (0..shards.clients).try_for_each(|client| {
        writeln!(out, r#"{{"ev":"end","t_ns":{t_ns},"node":"c{client}","inc":1,"reason":"done"}}"#)
    })
}

impl Shards {
    /// Returns the number of messages that result in this number of deliveries: a message is
    /// addressed to about half of the groups.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let each = u64::from(self.groups) * u64::from(self.replicas) / 2;
        (self.deliveries / each.max(1)).max(1)
    }

    fn members(&self, group: u32) -> std::ops::Range<u32> {
        group * self.replicas..(group + 1) * self.replicas
    }

    /// Returns the groups of a message as bits; at least one is set.
    #[must_use]
    pub fn groups_of(&self, message: u64) -> u64 {
        let sets = (1_u64 << self.groups.min(63)) - 1;
        1 + message.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % sets
    }

    fn is_for(&self, message: u64, node: u32) -> bool {
        self.groups_of(message) & (1 << (node / self.replicas)) != 0
    }

    fn name(&self, message: u64) -> String {
        let clients = u64::from(self.clients);
        format!("c{}/1/{}", message % clients, message / clients)
    }

    /// Returns the step at which a replica is killed and comes back, if any.
    fn killed_at(&self, node: u32) -> Option<u64> {
        let is_first = self.kills && node.is_multiple_of(self.replicas);
        is_first.then(|| self.messages() / 5 + u64::from(node))
    }

    fn inc(&self, node: u32, step: u64) -> u32 {
        1 + u32::from(self.killed_at(node).is_some_and(|killed| killed <= step))
    }

    fn multicast(&self, message: u64, out: &mut impl Write) -> io::Result<()> {
        let set = self.groups_of(message);
        let groups = (0..self.groups).filter(|group| set & (1 << group) != 0);
        let groups: Vec<String> = groups.map(|group| format!("\"g{group}\"")).collect();
        writeln!(
            out,
            r#"{{"ev":"multicast","t_ns":{},"node":"c{}","inc":1,"msg":"{}","groups":[{}],"bytes":100}}"#,
            message * STEP_NS,
            message % u64::from(self.clients),
            self.name(message),
            groups.join(",")
        )
    }

    /// Returns the message that a replica delivers in a turn.
    fn in_turn(&self, node: u32, turn: u64) -> u64 {
        let is_last = node / self.replicas + 1 == self.groups;
        match self.exchanged {
            Some((one, other)) if is_last && turn == one => other,
            Some((one, other)) if is_last && turn == other => one,
            _ => turn,
        }
    }

    /// Executes a replica's step: it delivers the message of this turn, or comes back.
    fn step(&self, node: u32, step: u64, out: &mut impl Write) -> io::Result<()> {
        let Some(turn) = step.checked_sub(LAG * u64::from(node)) else { return Ok(()) };
        let message = self.in_turn(node, turn);
        if self.killed_at(node) == Some(step) {
            self.come_back(node, step, turn, out)?;
        }
        if message < self.messages() && self.is_for(message, node) {
            self.deliver((node, step), message, false, out)?;
        }
        Ok(())
    }

    /// A replay is a part of the state.
    fn deliver(
        &self,
        (node, step): (u32, u64),
        message: u64,
        replayed: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let inc = self.inc(node, step);
        writeln!(
            out,
            r#"{{"ev":"deliver","t_ns":{},"node":"n{node}","inc":{inc},"group":"g{}","msg":"{}","sender":"c{}","bytes":100{}}}"#,
            step * STEP_NS,
            node / self.replicas,
            self.name(message),
            message % u64::from(self.clients),
            if replayed { r#","replayed":true"# } else { "" }
        )
    }

    /// Kills a replica, which then takes over all deliveries of its group.
    fn come_back(&self, node: u32, step: u64, upto: u64, out: &mut impl Write) -> io::Result<()> {
        let t_ns = step * STEP_NS;
        writeln!(out, r#"{{"ev":"fault","t_ns":{t_ns},"kind":"kill","nodes":["n{node}"]}}"#)?;
        writeln!(out, r#"{{"ev":"start","t_ns":{t_ns},"node":"n{node}","inc":2}}"#)?;
        let state = (0..upto).filter(|message| self.is_for(*message, node));
        state.into_iter().try_for_each(|message| self.deliver((node, step), message, true, out))
    }
}
