//! The member under test: its sends and deliveries.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::node::DurableCounts;

use super::delivery::{DriverReporter, Names};
use super::protocol::{Line, tell};
use tramontane_runtime::group::{Application, Messages, SendLargeError, Sender, ViewChanged};

/// Sends a message that is built in place, or as a large message if it does not fit into a slot.
pub(super) fn send_with(
    sender: &mut Sender,
    bytes: usize,
    timeout: Duration,
    build: impl FnOnce(&mut [u8]),
) -> Result<(), SendLargeError> {
    if bytes <= sender.message_max() || sender.large_max().is_none() {
        return Ok(sender.send_with(bytes, timeout, build).map(|_| ())?);
    }
    let mut buffer = sender.buffer(bytes)?;
    build(&mut buffer[..bytes]);
    sender.send_large(buffer, bytes, timeout).map(|_| ()).map_err(|unsent| unsent.why)
}

/// The application of the member.
pub(super) struct MemberUnderTest {
    delivery: DriverReporter,
    names: Arc<Names>,
    /// The nodes that may be members of each subgroup, in the group's own order.
    members: Vec<Vec<u32>>,
    /// The reports on each subgroup, if all of them are logged. Entries that the log had before
    /// this start are deliveries too, and are replayed.
    logged: Option<Vec<Reported>>,
}

/// The reports on a logged subgroup.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    delivered: u64,
    durable: u64,
}

impl MemberUnderTest {
    pub(super) fn new(
        delivery: DriverReporter,
        names: Arc<Names>,
        members: Vec<Vec<u32>>,
        is_logged: bool,
    ) -> Self {
        let logged = is_logged.then(|| vec![Reported::default(); members.len()]);
        Self { delivery, names, members, logged }
    }
}

impl Application for MemberUnderTest {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let subgroup = messages.subgroup();
        let Some(logged) = &mut self.logged else {
            // Messages from before this member's start are not deliveries by this member.
            self.delivery.report(subgroup, messages.filter(|message| !message.is_replayed));
            return;
        };
        let count = self.delivery.report(subgroup, messages);
        if let Some(reported) = logged.get_mut(subgroup.index()) {
            reported.delivered += count;
        }
    }

    /// Reports how many messages are durable. The counts cover all messages since the group began,
    /// and so do this member's deliveries, because it begins with everything in its log. After a
    /// restart of all members, only messages that a majority has are certain to survive.
    fn durable_changed(&mut self, subgroup: SubgroupId, durable: &DurableCounts) {
        let reported = self.logged.as_mut().and_then(|logged| logged.get_mut(subgroup.index()));
        let (Some(reported), Some(group)) = (reported, self.names.groups.get(subgroup.index()))
        else {
            return;
        };
        let count = durable.majority.0.min(reported.delivered);
        if count > reported.durable {
            reported.durable = count;
            // Without a driver, nobody reads the output.
            let _ = tell(&Line::Durable { group, upto: count - 1 });
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let mut lines = Vec::new();
        for (group, members) in self.names.groups.iter().zip(&self.members) {
            let present: Vec<u32> = change
                .view
                .members
                .iter()
                .map(|node| node.get())
                .filter(|node| members.contains(node))
                .collect();
            if !present.contains(&change.own.get()) {
                continue;
            }
            let names = present.iter().filter_map(|node| self.names.node(*node));
            let names: Vec<String> = names.map(str::to_owned).collect();
            let answer = Line::View { group, view: change.view.id.0, members: &names };
            // Writing to a vector cannot fail, and these types are always valid JSON.
            let _ = serde_json::to_writer(&mut lines, &answer);
            lines.push(b'\n');
        }
        let mut out = io::stdout().lock();
        // Without a driver, nobody reads the output.
        let _ = out.write_all(&lines).and_then(|()| out.flush());
    }
}
