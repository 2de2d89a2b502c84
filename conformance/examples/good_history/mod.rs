//! Valid histories of any size and several shapes.
//!
//! All nodes send in turn and deliver in one order. The other nodes lag by a few
//! messages, so a few messages are always in flight. Only each node's position is stored, so a
//! history of any length can be written.

pub mod shards;

use std::io::{self, Write};

/// The shape of a history.
#[derive(Clone, Copy, Debug)]
pub struct HistoryShape {
    /// Approximate number of records.
    pub events: u64,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of groups, each with all nodes.
    pub groups: u32,
    /// Whether groups have views, which change ten times.
    pub views: bool,
    /// Whether all records of one node come before those of the next.
    pub grouped_by_node: bool,
    /// Whether the last node is killed after a hundredth of the records.
    pub kill: bool,
    /// Whether the killed node restarts halfway, and replays its deliveries.
    pub restart: bool,
    /// Whether nodes sometimes report durable deliveries.
    pub durable: bool,
}

/// A node's lag in messages, per node number.
const LAG: u64 = 3;

/// Number of view changes.
const VIEW_CHANGES: u64 = 10;

/// Number of deliveries between two reports of durability.
const DURABLE_EVERY: u64 = 100;

const STEP_NS: u64 = 1_000;

/// One node in one history.
struct SimulatedMember<'a> {
    shape: &'a HistoryShape,
    node: u32,
    inc: u32,
    delivered: u64,
    places: u64,
}

/// Writes a history of this shape.
///
/// # Errors
/// Fails with the error of the stream.
pub fn write(shape: &HistoryShape, out: &mut impl Write) -> io::Result<()> {
    let names =
        |nodes: u32| (0..nodes).map(|node| format!("\"n{node}\"")).collect::<Vec<_>>().join(",");
    writeln!(out, r#"{{"ev":"run","version":1,"scenario":"made","seed":1}}"#)?;
    let all = names(shape.nodes);
    for group in 0..shape.groups {
        writeln!(
            out,
            r#"{{"ev":"group","group":"g{group}","members":[{all}],"senders":[{all}]}}"#
        )?;
    }
    let mut members: Vec<SimulatedMember<'_>> = (0..shape.nodes)
        .map(|node| SimulatedMember { shape, node, inc: 1, delivered: 0, places: 0 })
        .collect();
    let last_step = shape.messages() + LAG * u64::from(shape.nodes);
    if shape.grouped_by_node {
        for member in &mut members {
            (0..=last_step).try_for_each(|step| member.step(step, out))?;
        }
        return Ok(());
    }
    for step in 0..=last_step {
        members.iter_mut().try_for_each(|member| member.step(step, out))?;
    }
    Ok(())
}

impl HistoryShape {
    /// Returns the number of messages that result in this number of records.
    fn messages(&self) -> u64 {
        (self.events / (u64::from(self.nodes) + 1)).max(1)
    }

    fn killed_at(&self) -> Option<u64> {
        self.kill.then(|| self.messages() / 100 + 1)
    }

    fn restarted_at(&self) -> Option<u64> {
        self.restart.then(|| self.messages() / 2)
    }

    /// Returns the sender of the message of this step, which is a running node.
    fn sender(&self, message: u64) -> u32 {
        let sender = (message % u64::from(self.nodes)) as u32;
        if sender + 1 == self.nodes && self.killed_at().is_some_and(|killed| message >= killed) {
            0
        } else {
            sender
        }
    }

    /// Each sender counts its own messages; those sent instead of a dead sender's are counted
    /// separately.
    fn name(&self, message: u64) -> String {
        let (sender, number) = (self.sender(message), message / u64::from(self.nodes));
        let is_own = u64::from(sender) == message % u64::from(self.nodes);
        format!("n{sender}/{}/{number}", if is_own { 1 } else { 2 })
    }

    fn group(&self, message: u64) -> u64 {
        message % u64::from(self.groups)
    }

    /// Returns the view in which a message is delivered.
    fn view(&self, message: u64) -> u64 {
        1 + message * VIEW_CHANGES / self.messages()
    }
}

impl SimulatedMember<'_> {
    /// Executes one step of the node, with or without a message to send.
    fn step(&mut self, step: u64, out: &mut impl Write) -> io::Result<()> {
        let HistoryShape { nodes, .. } = *self.shape;
        let (messages, is_last) = (self.shape.messages(), self.node + 1 == nodes);
        let killed = self.shape.killed_at().filter(|_| is_last);
        let restarted = self.shape.restarted_at().filter(|_| is_last);
        let t_ns = step * STEP_NS;
        let node = self.node;
        if step == 0 {
            writeln!(out, r#"{{"ev":"start","t_ns":0,"node":"n{node}","inc":1}}"#)?;
            self.install(t_ns, 1, out)?;
        }
        if killed == Some(step) {
            writeln!(out, r#"{{"ev":"fault","t_ns":{t_ns},"kind":"kill","nodes":["n{node}"]}}"#)?;
        }
        if restarted == Some(step) {
            self.restart(t_ns, out)?;
        }
        let is_down = killed.is_some_and(|killed| step >= killed)
            && restarted.is_none_or(|restarted| step < restarted);
        if is_down {
            return Ok(());
        }
        if step < messages && self.shape.sender(step) == node {
            let (name, group) = (self.shape.name(step), self.shape.group(step));
            writeln!(
                out,
                r#"{{"ev":"multicast","t_ns":{t_ns},"node":"n{node}","inc":{},"msg":"{name}","groups":["g{group}"],"bytes":100,"digest":"{}"}}"#,
                self.inc,
                digest(step)
            )?;
        }
        let ready = (step + 1).saturating_sub(LAG * u64::from(node)).min(messages);
        while self.delivered < ready {
            self.deliver(t_ns, self.delivered, false, out)?;
            self.delivered += 1;
        }
        if step == messages + LAG * u64::from(nodes) {
            writeln!(
                out,
                r#"{{"ev":"end","t_ns":{t_ns},"node":"n{node}","inc":{},"reason":"done"}}"#,
                self.inc
            )?;
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        t_ns: u64,
        message: u64,
        replayed: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (node, inc, group) = (self.node, self.inc, self.shape.group(message));
        let (name, sender, digest) =
            (self.shape.name(message), self.shape.sender(message), digest(message));
        let view = self.shape.view(message);
        if !replayed && message > 0 && self.shape.view(message - 1) != view {
            self.install(t_ns, view, out)?;
        }
        let view = if self.shape.views { format!(r#""view":{view},"#) } else { String::new() };
        let replayed = if replayed { r#","replayed":true"# } else { "" };
        writeln!(
            out,
            r#"{{"ev":"deliver","t_ns":{t_ns},"node":"n{node}","inc":{inc},"group":"g{group}",{view}"msg":"{name}","sender":"n{sender}","bytes":100,"digest":"{digest}"{replayed}}}"#
        )?;
        self.places += 1;
        // Several groups would need a count of positions each; one group is enough to show the
        // cost.
        if self.shape.durable && self.shape.groups == 1 && self.places.is_multiple_of(DURABLE_EVERY)
        {
            let upto = self.places - 1;
            writeln!(
                out,
                r#"{{"ev":"durable","t_ns":{t_ns},"node":"n{node}","inc":{inc},"group":"g0","upto":{upto}}}"#
            )?;
        }
        Ok(())
    }

    /// Restarts the node, which replays its deliveries and catches up.
    fn restart(&mut self, t_ns: u64, out: &mut impl Write) -> io::Result<()> {
        (self.inc, self.places) = (2, 0);
        writeln!(out, r#"{{"ev":"start","t_ns":{t_ns},"node":"n{}","inc":2}}"#, self.node)?;
        (0..self.delivered).try_for_each(|message| self.deliver(t_ns, message, true, out))
    }

    fn install(&self, t_ns: u64, view: u64, out: &mut impl Write) -> io::Result<()> {
        if !self.shape.views {
            return Ok(());
        }
        let members: Vec<String> =
            (0..self.shape.nodes).map(|node| format!("\"n{node}\"")).collect();
        for group in 0..self.shape.groups {
            writeln!(
                out,
                r#"{{"ev":"view","t_ns":{t_ns},"node":"n{}","inc":{},"group":"g{group}","view":{view},"members":[{}]}}"#,
                self.node,
                self.inc,
                members.join(",")
            )?;
        }
        Ok(())
    }
}

/// Returns a unique text that looks like a digest.
fn digest(message: u64) -> String {
    format!("{:016x}", message.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
