//! The bank: accounts in every group, and transfers between accounts in any groups.
//!
//! A transfer gives the change of each account. A replica applies the changes of its own group. The
//! changes of a transfer add up to zero, so no money is lost if each group has applied each of its
//! transfers exactly once.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tramontane_runtime::shards::{Delivered, GroupId, ShardApplication};
use xxhash_rust::xxh3::xxh3_64;

use super::history::{HistoryFile, message_name};
use super::messages::BankReport;
use tramontane_conformance::history::Event;
use tramontane_local::clock::now_ns;
use tramontane_local::crew::Reporter;

/// Number of accounts per group.
pub(super) const ACCOUNTS: u32 = 100;

/// Opening balance of each account.
pub(super) const OPENING: i64 = 1_000;

/// Number of deliveries between two durability records.
const DURABLE_EVERY: usize = 32;

/// A change of one account's balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) group: GroupId,
    pub(super) account: u32,
    pub(super) by: i64,
}

/// Size of a change in bytes.
const CHANGE_BYTES: usize = 14;

/// Encodes a transfer as a message.
pub(super) fn encode(changes: &[Change]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(changes.len() * CHANGE_BYTES);
    for change in changes {
        bytes.extend_from_slice(&change.group.0.to_le_bytes());
        bytes.extend_from_slice(&change.account.to_le_bytes());
        bytes.extend_from_slice(&change.by.to_le_bytes());
    }
    bytes
}

/// Decodes a message as a transfer.
fn decode(bytes: &[u8]) -> impl Iterator<Item = Change> + '_ {
    bytes.chunks_exact(CHANGE_BYTES).filter_map(|bytes| {
        let (group, rest) = bytes.split_first_chunk()?;
        let (account, rest) = rest.split_first_chunk()?;
        let by = rest.first_chunk()?;
        Some(Change {
            group: GroupId(u16::from_le_bytes(*group)),
            account: u32::from_le_bytes(*account),
            by: i64::from_le_bytes(*by),
        })
    })
}

/// The name of a delivered message: its client, the client's incarnation, and its number from that
/// client.
type Name = (u16, u32, u64);

/// The state shared by all replicas of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    balances: Vec<i64>,
    delivered: Vec<Name>,
    /// The digest of all messages in order.
    digest: u64,
}

/// The values that two replicas compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Totals {
    /// Number of messages in the state.
    pub(super) messages: u64,
    /// The digest of all messages in order, and of the balances.
    pub(super) digest: u64,
    /// The total money in the group.
    pub(super) money: i64,
    /// Number of messages delivered to this process itself.
    pub(super) delivered: u64,
}

/// The identity of a replica in a history.
#[derive(Clone, Debug)]
pub(super) struct Who {
    pub(super) group: GroupId,
    pub(super) group_name: String,
    pub(super) node: String,
    pub(super) inc: u32,
}

/// The application of a replica.
pub(super) struct Bank {
    who: Who,
    state: State,
    history: HistoryFile,
    totals: Arc<Mutex<Totals>>,
    reporter: Reporter<BankReport>,
}

impl Bank {
    /// Creates a bank in which each account has its opening balance.
    pub(super) fn new(
        who: Who,
        history: HistoryFile,
        totals: Arc<Mutex<Totals>>,
        reporter: Reporter<BankReport>,
    ) -> Self {
        let balances = vec![OPENING; usize::try_from(ACCOUNTS).unwrap_or(0)];
        let state = State { balances, delivered: Vec::new(), digest: 0 };
        let mut bank = Self { who, state, history, totals, reporter };
        bank.show(0);
        bank
    }

    fn apply(&mut self, payload: &[u8]) {
        for change in decode(payload).filter(|change| change.group == self.who.group) {
            let account = usize::try_from(change.account).unwrap_or(usize::MAX);
            if let Some(balance) = self.state.balances.get_mut(account) {
                *balance += change.by;
            }
        }
    }

    /// Publishes the values that two replicas compare, after `more` further messages.
    fn show(&mut self, more: u64) {
        let bytes: Vec<u8> =
            self.state.balances.iter().flat_map(|balance| balance.to_le_bytes()).collect();
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.messages = self.state.delivered.len() as u64;
        totals.digest = self.state.digest ^ xxh3_64(&bytes);
        totals.money = self.state.balances.iter().sum();
        totals.delivered += more;
    }

    fn delivery<'e>(&'e self, msg: &'e str, replayed: bool) -> Event<'e> {
        Event::Deliver {
            t_ns: now_ns(),
            node: self.who.node.as_str().into(),
            inc: self.who.inc,
            group: self.who.group_name.as_str().into(),
            view: None,
            msg: Some(msg.into()),
            sender: None,
            bytes: None,
            digest: None,
            replayed,
        }
    }

    /// Returns a record that the deliveries so far are durable, when one is due.
    fn durable(&self) -> Option<Event<'_>> {
        let count = self.state.delivered.len();
        let upto = u64::try_from(count.checked_sub(1)?).ok()?;
        count.is_multiple_of(DURABLE_EVERY).then(|| Event::Durable {
            t_ns: now_ns(),
            node: self.who.node.as_str().into(),
            inc: self.who.inc,
            group: self.who.group_name.as_str().into(),
            upto,
        })
    }
}

impl ShardApplication for Bank {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        let id = message.id;
        let name = (id.client.0, id.incarnation, id.number);
        self.apply(message.payload);
        self.state.delivered.push(name);
        let mut bytes = self.state.digest.to_le_bytes().to_vec();
        bytes.extend_from_slice(message_name(name).as_bytes());
        bytes.extend_from_slice(message.payload);
        self.state.digest = xxh3_64(&bytes);
        let text = message_name(name);
        let events = [Some(self.delivery(&text, false)), self.durable()];
        self.history.write(events.into_iter().flatten());
        self.show(1);
        0
    }

    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        let bytes = serde_json::to_vec(&self.state).unwrap_or_default();
        Box::new(io::Cursor::new(bytes))
    }

    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let known = self.state.delivered.len();
        self.state = serde_json::from_reader(state)?;
        let names: Vec<String> =
            self.state.delivered.iter().skip(known).map(|name| message_name(*name)).collect();
        self.history.write(names.iter().map(|name| self.delivery(name, true)));
        self.show(0);
        Ok(())
    }

    fn leads(&mut self, term: u64) {
        let event = Event::Leader {
            t_ns: now_ns(),
            node: self.who.node.as_str().into(),
            inc: self.who.inc,
            group: self.who.group_name.as_str().into(),
            term: Some(term),
        };
        self.history.write([event]);
        // The parent may have exited; then this process ends too.
        let _ = self.reporter.send(&BankReport::Leads { term });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bank_transfer_round_trips() {
        let change = |group, account, by| Change { group: GroupId(group), account, by };
        let changes = [change(0, 7, -300), change(7, 99, 100), change(65_535, 0, i64::MAX)];
        assert_eq!(decode(&encode(&changes)).collect::<Vec<_>>(), changes);
        assert_eq!(decode(&encode(&changes)[..20]).count(), 1, "what is cut off is left out");
    }
}
