//! The delivered order of a subgroup that accepts clients: its messages without duplicates, each
//! with its sequence position, and the record of its clients.
//!
//! # Invariants
//! - All members that have delivered the same messages have the same order, because a joining node
//!   receives the order as part of the state.

use std::io;
use std::io::{ErrorKind, Read};

use serde::{Deserialize, Serialize};
use tramontane_control::Source;
use tramontane_control::client_messages::{ClientId, ClientLife, Position};
use tramontane_core::ids::{NodeId, SubgroupId};

use super::feed::{ClientOutcome, News};
use super::notices::Notice;
use super::retained::RetainedMessage;
use super::table::{ClientTable, REMEMBERED_MAX, TableLookup};
use crate::group::clients::origin::Origin;
use crate::group::delivery::message::Message;

/// The maximum length of an encoded order, in bytes: seven numbers of at most ten bytes each per
/// client.
const BYTES_MAX: usize = (REMEMBERED_MAX + 1) * 70;

/// The part of an order that a joining node receives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OrderState {
    /// The number of messages delivered since the group began.
    handed_over: u64,
    /// The number of client control messages. The log contains both these and the messages.
    words: u64,
    table: ClientTable,
    /// A digest of the delivered messages.
    digest: u64,
}

/// The result of classifying a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken<'m> {
    /// The message has already been delivered, or its client is unknown.
    Duplicate,
    /// A client control message, which the application does not receive.
    Word,
    Message(Message<'m>),
}

/// The order of one subgroup at this member.
pub(crate) struct SubgroupOrder {
    subgroup: SubgroupId,
    own: NodeId,
    state: OrderState,
    /// Events to be reported after the application has returned.
    news: News,
    /// The client that the last control message made the group forget. The application learns of
    /// this before it receives another message.
    forgotten: Option<ClientId>,
}

impl SubgroupOrder {
    pub(crate) fn new(subgroup: SubgroupId, own: NodeId) -> Self {
        let (state, news) = (OrderState::default(), News::default());
        Self { subgroup, own, state, news, forgotten: None }
    }

    pub(crate) const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Clears the order of a closed subgroup, because a reopened subgroup has a new history and no
    /// clients.
    pub(crate) fn begin_anew(&mut self) {
        (self.state, self.news, self.forgotten) = (OrderState::default(), News::default(), None);
    }

    /// Classifies a message in the form in which it was sent.
    pub(crate) fn take<'m>(&mut self, sent: &Message<'m>) -> Taken<'m> {
        let split = match sent.is_large {
            true => Some((Origin::Member, sent.payload)),
            false => Origin::split(sent.payload),
        };
        let Some((origin, payload)) = split else { return Taken::Duplicate };
        let client = match origin {
            Origin::Member => None,
            Origin::Client { life, ordinal } => {
                if !self.is_new(life, ordinal) {
                    return Taken::Duplicate;
                }
                Some(life.id)
            }
            Origin::Attach { life, is_new, source } => {
                self.attach(life, is_new, (sent.sender, source));
                return self.word();
            }
            Origin::LeaseEnds { life, attachments } => {
                if self.state.table.end_lease(life, attachments) {
                    self.forget(life.id);
                }
                return self.word();
            }
        };
        let record = self.records();
        let at = self.position();
        let delivered = RetainedMessage {
            place: at.place,
            record,
            view: sent.view.0,
            place_in_view: sent.place.0,
            sender: sent.sender.get(),
            client,
            payload: payload.into(),
        };
        let Position { place, digest } = at.after(&delivered.publish());
        (self.state.handed_over, self.state.digest) = (place, digest);
        self.news.delivered.push((delivered, digest));
        Taken::Message(Message { payload, client, ..*sent })
    }

    /// Returns the number of records in the log, if there is one.
    const fn records(&self) -> u64 {
        self.state.handed_over.saturating_add(self.state.words)
    }

    fn word<'m>(&mut self) -> Taken<'m> {
        self.news.words.push(self.records());
        self.state.words += 1;
        Taken::Word
    }

    fn is_new(&mut self, life: ClientLife, ordinal: u64) -> bool {
        let record = self.records();
        match self.state.table.message(life, ordinal, record) {
            TableLookup::New => {
                self.news.outcomes.push(ClientOutcome::Delivered { life, ordinal, record });
                true
            }
            TableLookup::Duplicate => false,
            verdict @ (TableLookup::Unknown | TableLookup::Ahead) => {
                let ClientLife { id, .. } = life;
                tracing::debug!(client = %id, ordinal, ?verdict, "a client's message is left out");
                false
            }
        }
    }

    fn attach(&mut self, life: ClientLife, is_new: bool, from: (NodeId, Source)) {
        let attached = self.state.table.attach(life, is_new, from);
        self.news.has_changed |= attached.is_ok();
        if from.0 == self.own {
            self.news.outcomes.push(ClientOutcome::Attached { life, attached });
        }
    }

    fn forget(&mut self, client: ClientId) {
        self.news.has_changed = true;
        self.news.notices.push((self.state.handed_over, Notice::Forgotten(client)));
        self.forgotten = Some(client);
    }

    /// Returns whether a client has just been forgotten. Called before the next message is taken.
    pub(crate) const fn has_forgotten(&self) -> bool {
        self.forgotten.is_some()
    }

    /// Takes the client that has just been forgotten, for the application.
    pub(crate) fn take_forgotten(&mut self) -> Option<ClientId> {
        self.forgotten.take()
    }

    /// Returns the current position of the order.
    pub(crate) const fn position(&self) -> Position {
        Position { place: self.state.handed_over, digest: self.state.digest }
    }

    /// Returns the events since the last call.
    pub(crate) fn take_news(&mut self) -> News {
        let mut news = std::mem::take(&mut self.news);
        (news.position, news.words_before) = (self.position(), self.state.words);
        if news.has_changed {
            news.known = self.state.table.known().collect();
        }
        news
    }

    /// Returns the order in the form that a joining node receives.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        // Encoding numbers into memory cannot fail.
        let state = postcard::to_stdvec(&self.state).unwrap_or_default();
        let length = u32::try_from(state.len()).unwrap_or(u32::MAX);
        [&length.to_le_bytes(), state.as_slice()].concat()
    }

    /// Restores another member's order, and leaves the rest of the input unread.
    pub(crate) fn restore(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let mut length = [0; 4];
        // Empty input means the initial state.
        let is_there = from.read(&mut length[..1])? > 0;
        (self.state, self.forgotten) = (OrderState::default(), None);
        self.news = News { has_changed: true, is_restored: true, ..News::default() };
        if !is_there {
            return Ok(());
        }
        from.read_exact(&mut length[1..])?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        let wrong =
            || io::Error::new(ErrorKind::InvalidData, "what is known of clients is damaged");
        if length > BYTES_MAX {
            return Err(wrong());
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        self.state = postcard::from_bytes(&bytes).map_err(|_| wrong())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tramontane_control::client_messages::ClientId;
    use tramontane_core::ids::{Place, ViewId};

    use super::*;
    use crate::group::clients::order::table::Attachment;

    fn sent(bytes: &[u8]) -> Message<'_> {
        Message {
            subgroup: SubgroupId(0),
            view: ViewId(1),
            place: Place(9),
            sender: NodeId(2),
            payload: bytes,
            client: None,
            is_large: false,
            is_replayed: false,
        }
    }

    fn message(origin: &Origin, payload: &[u8]) -> Vec<u8> {
        let mut message = payload.to_vec();
        message.resize(payload.len() + origin.trailer(), 0);
        origin.write_behind(&mut message);
        message
    }

    fn text(taken: Taken<'_>) -> Option<String> {
        match taken {
            Taken::Message(of) => Some(String::from_utf8_lossy(of.payload).into_owned()),
            Taken::Duplicate | Taken::Word => None,
        }
    }

    /// A member that restores another member's state at any moment continues exactly as that member
    /// would.
    #[test]
    fn joiner_continues_order_without_duplicates() {
        let life = ClientLife { id: ClientId(5), incarnation: 1 };
        let mut words =
            vec![message(&Origin::Attach { life, is_new: true, source: Source(7) }, b"")];
        for (ordinal, text) in [(0, "a"), (1, "b"), (0, "a"), (1, "b"), (2, "c"), (2, "c")] {
            words.push(message(&Origin::Client { life, ordinal }, text.as_bytes()));
        }
        words.push(message(&Origin::Member, b"line"));
        let mut order = SubgroupOrder::new(SubgroupId(0), NodeId(2));
        let mut others: Vec<(Vec<String>, SubgroupOrder)> = Vec::new();
        let mut handed = Vec::new();
        for word in &words {
            let mut joined = SubgroupOrder::new(SubgroupId(0), NodeId(3));
            let snapshot = [order.snapshot(), b"behind".to_vec()].concat();
            let mut from = snapshot.as_slice();
            joined.restore(&mut from).expect("it is whole");
            assert_eq!(from, b"behind");
            others.push((handed.clone(), joined));
            handed.extend(text(order.take(&sent(word))));
            for (handed, other) in &mut others {
                handed.extend(text(other.take(&sent(word))));
            }
        }
        assert_eq!(handed, ["a", "b", "c", "line"]);
        for (all, other) in others {
            assert_eq!((all, &other.state), (handed.clone(), &order.state));
        }
        let news = order.take_news();
        assert_eq!((news.position.place, news.delivered.len(), news.known.len()), (4, 4, 1));
        let places = news.delivered.iter().map(|(delivered, _)| delivered.place);
        assert!(places.eq(0..4));
        assert_eq!(news.delivered[1].0.client, Some(ClientId(5)));
        let told = |at: Position, (of, _): &(RetainedMessage, u64)| at.after(&of.publish());
        let position = news.delivered.iter().fold(Position::default(), told);
        assert_eq!((news.position, news.delivered[3].1), (position, position.digest));
        let attached = ClientOutcome::Attached {
            life,
            attached: Ok(Attachment { next: 0, number: 1, records: 0 }),
        };
        assert!(news.outcomes.contains(&attached));
        assert!(order.take_news().delivered.is_empty(), "once");
    }

    /// The control message may arrive twice, and may name an attachment that is no longer the
    /// latest.
    #[test]
    fn client_removal_is_ordered_exactly_once() {
        let life = ClientLife { id: ClientId(5), incarnation: 1 };
        let mut order = SubgroupOrder::new(SubgroupId(0), NodeId(2));
        let end = |attachments| Origin::LeaseEnds { life, attachments };
        let words = [
            (message(&Origin::Attach { life, is_new: true, source: Source(7) }, b""), false),
            (message(&Origin::Member, b"line"), false),
            (message(&end(0), b""), false),
            (message(&end(1), b""), true),
            (message(&end(1), b""), false),
        ];
        for (word, forgets) in words {
            order.take(&sent(&word));
            assert_eq!(order.has_forgotten(), forgets);
            assert_eq!(order.take_forgotten(), forgets.then_some(life.id));
        }
        assert_eq!(order.take_news().notices, [(1, Notice::Forgotten(life.id))]);
    }

    #[test]
    fn damaged_order_state_is_refused() {
        let mut order = SubgroupOrder::new(SubgroupId(0), NodeId(2));
        for damaged in [&[1, 0, 0][..], &[9, 0, 0, 0, 1], &[255; 9], &[1, 0, 0, 0, 255]] {
            order.restore(&mut { damaged }).expect_err("it is no state");
        }
        order.restore(&mut io::empty()).expect("the state of the beginning");
        assert_eq!(order.state, OrderState::default());
    }
}
