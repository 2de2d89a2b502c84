//! Good histories of disjoint groups of replicas and of clients, which are members of none.
//!
//! Clients send in turn, each message to a set of groups that its number decides, and replicas
//! deliver in one order, some messages behind the first ones.

use std::io::{self, Write};

/// What such a history is like.
#[derive(Clone, Copy, Debug)]
pub struct Shards {
    /// About so many deliveries.
    pub deliveries: u64,
    /// So many groups.
    pub groups: u32,
    /// So many replicas each has.
    pub replicas: u32,
    /// So many clients.
    pub clients: u32,
    /// The first replica of each group is killed when a fifth is over, and comes back at once with
    /// the state of its group.
    pub kills: bool,
    /// Two messages of which the last group delivers each in the place of the other: what is wrong
    /// with the history, if anything is.
    pub exchanged: Option<(u64, u64)>,
}

/// By how many messages a replica is behind the one before it.
const LAG: u64 = 5;

const STEP_NS: u64 = 1_000;

/// Writes such a history.
///
/// # Errors
/// What the stream says.
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
    /// How many messages make so many deliveries: one is for half of the groups or so.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let each = u64::from(self.groups) * u64::from(self.replicas) / 2;
        (self.deliveries / each.max(1)).max(1)
    }

    fn members(&self, group: u32) -> std::ops::Range<u32> {
        group * self.replicas..(group + 1) * self.replicas
    }

    /// The groups of a message, a bit for each; never none.
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

    /// At which step a replica is killed and comes back, if it is.
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

    /// The message that a replica delivers when it is a message's turn.
    fn in_turn(&self, node: u32, turn: u64) -> u64 {
        let is_last = node / self.replicas + 1 == self.groups;
        match self.exchanged {
            Some((one, other)) if is_last && turn == one => other,
            Some((one, other)) if is_last && turn == other => one,
            _ => turn,
        }
    }

    /// What a replica does in a step: it delivers the message whose turn it is, or comes back.
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

    /// What is replayed is a part of the state.
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

    /// A replica is killed, and takes over all that its group has delivered.
    fn come_back(&self, node: u32, step: u64, upto: u64, out: &mut impl Write) -> io::Result<()> {
        let t_ns = step * STEP_NS;
        writeln!(out, r#"{{"ev":"fault","t_ns":{t_ns},"kind":"kill","nodes":["n{node}"]}}"#)?;
        writeln!(out, r#"{{"ev":"start","t_ns":{t_ns},"node":"n{node}","inc":2}}"#)?;
        let state = (0..upto).filter(|message| self.is_for(*message, node));
        state.into_iter().try_for_each(|message| self.deliver((node, step), message, true, out))
    }
}
