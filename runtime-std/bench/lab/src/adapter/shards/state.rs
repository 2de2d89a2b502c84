//! The application of a replica under test: it reports deliveries to the driver. Its state is the
//! list of deliveries, and the names of clients.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use crate::adapter::payload;
use crate::adapter::protocol::{Line, digest, tell};
use tramontane_runtime::shards::{Delivered, MessageId, ShardApplication};

/// The state shared by all replicas of a group.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReplicatedState {
    /// The node of each client incarnation, by the client's number and incarnation.
    nodes: BTreeMap<String, String>,
    delivered: Vec<ReportedMessage>,
}

/// A message as reported to the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReportedMessage {
    message: Option<String>,
    sender: String,
    bytes: usize,
    digest: Option<String>,
}

/// The application of a replica under test, which reports deliveries to the driver.
pub(super) struct DeliveryReporter {
    group: String,
    state: ReplicatedState,
    /// Whether the replica is new: it has delivered nothing, and restored no state.
    is_new: bool,
    /// Whether deliveries are reported as durable at once. A replica that continues from its disk
    /// receives the last messages before its end again, as new ones.
    is_kept_by_group: bool,
}

impl DeliveryReporter {
    pub(super) fn new(group: String, is_kept_by_group: bool) -> Self {
        Self { group, state: ReplicatedState::default(), is_new: true, is_kept_by_group }
    }

    /// Reports all deliveries after a position to the driver. Each line is written before the
    /// upcall returns. The group keeps deliveries while a majority of it runs.
    fn tell(&self, from: usize, replayed: bool) -> io::Result<()> {
        for (sequence, told) in self.state.delivered.iter().enumerate().skip(from) {
            let ReportedMessage { message, sender, bytes, digest } = told;
            tell(&Line::Deliver {
                message: message.as_deref(),
                sender,
                group: &self.group,
                view: None,
                sequence: Some(sequence as u64),
                bytes: *bytes,
                digest: digest.clone(),
                replayed,
            })?;
        }
        match self.state.delivered.len().checked_sub(1) {
            Some(last) if self.is_kept_by_group => {
                tell(&Line::Durable { group: &self.group, upto: last as u64 })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the name of a client incarnation.
fn client(id: MessageId) -> String {
    format!("{}/{}", id.client, id.incarnation)
}

impl ShardApplication for DeliveryReporter {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        self.is_new = false;
        let Delivered { id, payload, .. } = *message;
        // The first message of a client names its node.
        if id.number == 0 {
            let node = String::from_utf8_lossy(payload).into_owned();
            self.state.nodes.insert(client(id), node);
            return 0;
        }
        let told = ReportedMessage {
            message: payload::name(payload).map(Cow::into_owned),
            // If a client has not sent its name, its node is unknown, and the driver will report
            // that.
            sender: self.state.nodes.get(&client(id)).cloned().unwrap_or_default(),
            bytes: payload.len(),
            digest: digest(payload),
        };
        self.state.delivered.push(told);
        // Without a driver, nobody reads the output; the end of the input ends the main thread.
        let _ = self.tell(self.state.delivered.len() - 1, false);
        0
    }

    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        // Writing to a vector cannot fail, and a list of texts is valid JSON.
        Box::new(io::Cursor::new(serde_json::to_vec(&self.state).unwrap_or_default()))
    }

    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let state: ReplicatedState = serde_json::from_reader(state)?;
        let before = std::mem::replace(&mut self.state, state).delivered;
        if !self.state.delivered.starts_with(&before) {
            return Err(io::Error::other("it does not begin with what was delivered here"));
        }
        // A replica that is already running has missed the remaining messages, and delivers them
        // now.
        let replayed = std::mem::replace(&mut self.is_new, false);
        self.tell(before.len(), replayed)
    }

    fn leads(&mut self, term: u64) {
        // Without a driver, nobody reads the output.
        let _ = tell(&Line::Leader { group: &self.group, term: Some(term) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tramontane_core::ids::ClientNumber;
    use tramontane_runtime::shards::Destinations;

    fn deliver(application: &mut DeliveryReporter, number: u64, payload: &[u8]) {
        let id = MessageId { client: ClientNumber(3), incarnation: 2, number };
        let destinations = Destinations::default();
        application.deliver(&Delivered { place: number, id, destinations, payload });
    }

    fn greeted() -> DeliveryReporter {
        let mut application = DeliveryReporter::new("g0".to_owned(), true);
        deliver(&mut application, 0, b"n7");
        application
    }

    #[test]
    fn state_is_restored_only_if_it_extends_history() {
        let mut from = greeted();
        deliver(&mut from, 1, b"n7/1/0 n7/1/0");
        let mut late = greeted();
        deliver(&mut late, 1, b"n7/1/0 n7/1/0");
        deliver(&mut from, 2, b"");
        late.restore(&mut from.snapshot()).expect("it goes on");
        assert_eq!(late.state.delivered, from.state.delivered);
        let mut new = DeliveryReporter::new("g0".to_owned(), true);
        new.restore(&mut from.snapshot()).expect("all of it");
        deliver(&mut new, 3, b"n7/1/2 n7");
        let senders: Vec<&str> =
            new.state.delivered.iter().map(|told| told.sender.as_str()).collect();
        assert_eq!(senders, ["n7"; 3], "the names of clients are part of it");
        let mut other = greeted();
        deliver(&mut other, 1, b"n7/1/9 n7/1/9");
        assert!(other.restore(&mut from.snapshot()).is_err(), "another history");
    }
}
