//! The number of messages delivered from each client of a subgroup. Duplicates are detected with
//! this table on delivery, and therefore identically at all members.
//!
//! # Why one number a client is enough
//! A client numbers its messages without gaps, and a member sends each client's messages in order.
//! A client that moves to another member starts there with its first unacknowledged message; all
//! earlier ones have been delivered. So the messages that one member sends for a client follow a
//! delivered message without a gap. A message whose number is not below the expected one therefore
//! has exactly the expected number and is new; every lower number is a duplicate. This holds even
//! if two members send interleaved messages for the same client.
//!
//! # Invariants
//! - The table changes only on deliveries.
//! - An ordinal of a client incarnation is new at most once until the lease of that incarnation
//!   ends.
//! - At most [`REMEMBERED_MAX`] clients are remembered, and no source may use more than half of the
//!   entries that the others leave free. So a new source always finds room, whatever any other
//!   source does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tramontane_control::Source;
use tramontane_control::client_messages::{ClientId, ClientLife, ClientRefusal};
use tramontane_core::ids::NodeId;

/// The maximum number of clients that a subgroup remembers.
pub(crate) const REMEMBERED_MAX: usize = 4_096;

/// The record of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ClientEntry {
    incarnation: u64,
    /// The next ordinal: all lower ones have been delivered.
    next: u64,
    /// The member that last attached the client.
    home: u32,
    /// The number of times that the client has been attached.
    attachments: u64,
    /// The number of records in a log, up to and including the client's last message.
    records: u64,
    /// The source from which the client last connected.
    source: u64,
}

impl ClientEntry {
    const fn attachment(&self) -> Attachment {
        Attachment { next: self.next, number: self.attachments, records: self.records }
    }
}

/// A client, and the member that it is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) life: ClientLife,
    pub(crate) home: NodeId,
    pub(crate) attachments: u64,
}

/// The attachment of a client to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// The next ordinal: all lower ones have been delivered.
    pub(crate) next: u64,
    /// The number of attachments so far.
    pub(crate) number: u64,
    /// The number of records in a log, up to the last of these messages.
    pub(crate) records: u64,
}

/// The result of looking up a client's message in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableLookup {
    New,
    /// The message has already been delivered.
    Duplicate,
    /// The group does not know this incarnation of the client.
    Unknown,
    /// Earlier ordinals are missing. No member of this program sends such a message.
    Ahead,
}

/// All clients that a subgroup remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientTable {
    clients: BTreeMap<ClientId, ClientEntry>,
}

impl ClientTable {
    /// Records a client's message that would have this record number in a log, and returns whether
    /// it is new.
    pub(crate) fn message(&mut self, life: ClientLife, ordinal: u64, record: u64) -> TableLookup {
        let Some(entry) = self.entry(life) else { return TableLookup::Unknown };
        if ordinal > entry.next {
            return TableLookup::Ahead;
        }
        if ordinal < entry.next {
            return TableLookup::Duplicate;
        }
        entry.next = entry.next.saturating_add(1);
        entry.records = record.saturating_add(1);
        TableLookup::New
    }

    /// Attaches a client to a member.
    pub(crate) fn attach(
        &mut self,
        life: ClientLife,
        is_new: bool,
        (home, Source(source)): (NodeId, Source),
    ) -> Result<Attachment, ClientRefusal> {
        let home = home.get();
        let is_full = is_new && !self.has_room(source);
        match self.clients.get_mut(&life.id) {
            Some(entry) if entry.incarnation == life.incarnation => {
                (entry.home, entry.source) = (home, source);
                entry.attachments = entry.attachments.saturating_add(1);
                Ok(entry.attachment())
            }
            Some(_) if is_new => Err(ClientRefusal::IdTaken),
            _ if !is_new => Err(ClientRefusal::LeaseOver),
            _ if is_full => Err(ClientRefusal::TooMany),
            _ => {
                let incarnation = life.incarnation;
                let (next, attachments, records) = (0, 1, 0);
                let entry = ClientEntry { incarnation, next, home, attachments, records, source };
                self.clients.insert(life.id, entry);
                Ok(entry.attachment())
            }
        }
    }

    /// Returns whether there is room for another client from a source.
    fn has_room(&self, source: u64) -> bool {
        let of_source = self.clients.values().filter(|entry| entry.source == source).count();
        of_source < REMEMBERED_MAX.saturating_sub(self.clients.len())
    }

    /// Forgets a client, unless it has since been attached again.
    pub(crate) fn end_lease(&mut self, life: ClientLife, attachments: u64) -> bool {
        let is_meant = self.entry(life).is_some_and(|entry| entry.attachments == attachments);
        is_meant && self.clients.remove(&life.id).is_some()
    }

    /// All clients.
    pub(crate) fn known(&self) -> impl Iterator<Item = Known> {
        self.clients.iter().map(|(id, entry)| Known {
            life: ClientLife { id: *id, incarnation: entry.incarnation },
            home: NodeId(entry.home),
            attachments: entry.attachments,
        })
    }

    fn entry(&mut self, life: ClientLife) -> Option<&mut ClientEntry> {
        self.clients.get_mut(&life.id).filter(|entry| entry.incarnation == life.incarnation)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use proptest::prelude::*;

    use super::*;

    const fn life(id: u64, incarnation: u64) -> ClientLife {
        ClientLife { id: ClientId(id), incarnation }
    }

    /// Attaches a client, and returns its next ordinal.
    fn attach(
        table: &mut ClientTable,
        life: ClientLife,
        is_new: bool,
        home: u32,
    ) -> Result<u64, ClientRefusal> {
        attach_from(table, life, is_new, (home, 0))
    }

    /// Attaches a client from a given source, and returns its next ordinal.
    fn attach_from(
        table: &mut ClientTable,
        life: ClientLife,
        is_new: bool,
        (home, source): (u32, u64),
    ) -> Result<u64, ClientRefusal> {
        let attached = table.attach(life, is_new, (NodeId(home), Source(source)));
        attached.map(|attachment| attachment.next)
    }

    #[test]
    fn expired_client_or_used_id_is_refused() {
        let mut table = ClientTable::default();
        assert_eq!(attach(&mut table, life(1, 1), false, 0), Err(ClientRefusal::LeaseOver));
        assert_eq!(attach(&mut table, life(1, 1), true, 0), Ok(0));
        assert_eq!(attach(&mut table, life(1, 2), true, 1), Err(ClientRefusal::IdTaken));
        assert_eq!(attach(&mut table, life(1, 2), false, 1), Err(ClientRefusal::LeaseOver));
        assert_eq!(table.message(life(1, 2), 0, 0), TableLookup::Unknown);
        assert_eq!(table.message(life(1, 1), 0, 6), TableLookup::New);
        assert_eq!(attach(&mut table, life(1, 1), true, 2), Ok(1), "the same client");
        assert!(!table.end_lease(life(1, 1), 1), "it was attached again");
        assert!(!table.end_lease(life(1, 2), 2), "another life");
        assert!(table.end_lease(life(1, 1), 2));
        assert_eq!(table.message(life(1, 1), 1, 0), TableLookup::Unknown);
        assert_eq!(attach(&mut table, life(1, 2), true, 1), Ok(0), "the id is free");
    }

    /// One source fills half of the table, the next one half of the rest, and so on until one entry
    /// remains for the last.
    #[test]
    fn client_table_is_bounded_per_source() {
        let mut table = ClientTable::default();
        let mut ids = 0..;
        let mut fill = |table: &mut ClientTable, source| {
            let next = |id| attach_from(table, life(id, 1), true, (0, source)).is_ok();
            ids.by_ref().map(next).take_while(|is_in| *is_in).count()
        };
        let counts: Vec<usize> = (0..14).map(|source| fill(&mut table, source)).collect();
        assert_eq!(counts[..3], [REMEMBERED_MAX / 2, REMEMBERED_MAX / 4, REMEMBERED_MAX / 8]);
        assert_eq!(counts[11..], [1, 1, 0]);
        assert_eq!(table.clients.len(), REMEMBERED_MAX);
        let next = life(u64::MAX, 1);
        assert_eq!(attach_from(&mut table, next, true, (0, 99)), Err(ClientRefusal::TooMany));
        assert_eq!(attach(&mut table, life(7, 1), false, 1), Ok(0), "one that is known");
        assert!(table.end_lease(life(3, 1), 1));
        assert_eq!(attach_from(&mut table, next, true, (0, 0)), Err(ClientRefusal::TooMany));
        assert_eq!(attach_from(&mut table, next, true, (0, 99)), Ok(0));
    }

    /// An event that is delivered.
    #[derive(Clone, Copy, Debug)]
    enum Word {
        Attach { life: ClientLife, is_new: bool, home: u32 },
        Message { life: ClientLife, ordinal: u64 },
        End { life: ClientLife, attachments: u64 },
    }

    fn words() -> impl Strategy<Value = Word> {
        let life = (0..3_u64, 0..2_u64).prop_map(|(id, incarnation)| life(id, incarnation));
        prop_oneof![
            (life.clone(), any::<bool>(), 0..3_u32).prop_map(|(life, is_new, home)| Word::Attach {
                life,
                is_new,
                home
            }),
            (life.clone(), 0..6_u64).prop_map(|(life, ordinal)| Word::Message { life, ordinal }),
            (life, 0..4_u64).prop_map(|(life, attachments)| Word::End { life, attachments }),
        ]
    }

    /// A model that keeps all events, and searches all of them.
    #[derive(Default)]
    struct Naive {
        /// Each client incarnation, the members that it was attached to, and its delivered
        /// ordinals.
        leases: Vec<(ClientLife, Vec<u32>, BTreeSet<u64>)>,
    }

    impl Naive {
        fn lease(
            &mut self,
            life: ClientLife,
        ) -> Option<&mut (ClientLife, Vec<u32>, BTreeSet<u64>)> {
            self.leases.iter_mut().find(|(of, ..)| *of == life)
        }

        fn attach(&mut self, life: ClientLife, is_new: bool, home: u32) -> Option<u64> {
            if let Some((_, homes, delivered)) = self.lease(life) {
                homes.push(home);
                return Some(delivered.len() as u64);
            }
            let is_taken = self.leases.iter().any(|(of, ..)| of.id == life.id);
            if !is_new || is_taken {
                return None;
            }
            self.leases.push((life, vec![home], BTreeSet::new()));
            Some(0)
        }

        fn message(&mut self, life: ClientLife, ordinal: u64) -> bool {
            let Some((_, _, delivered)) = self.lease(life) else { return false };
            let has_all_before = (0..ordinal).all(|before| delivered.contains(&before));
            has_all_before && delivered.insert(ordinal)
        }

        fn end(&mut self, life: ClientLife, attachments: u64) -> bool {
            let before = self.leases.len();
            self.leases.retain(|(of, homes, _)| *of != life || homes.len() as u64 != attachments);
            self.leases.len() < before
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn client_table_matches_naive_model(
            words in prop::collection::vec(words(), 0..60),
        ) {
            let (mut table, mut naive) = (ClientTable::default(), Naive::default());
            for word in words {
                match word {
                    Word::Attach { life, is_new, home } => {
                        let said = attach(&mut table, life, is_new, home).ok();
                        prop_assert_eq!(said, naive.attach(life, is_new, home));
                    }
                    Word::Message { life, ordinal } => {
                        let is_new = table.message(life, ordinal, 0) == TableLookup::New;
                        prop_assert_eq!(is_new, naive.message(life, ordinal));
                    }
                    Word::End { life, attachments } => {
                        let has_ended = table.end_lease(life, attachments);
                        prop_assert_eq!(has_ended, naive.end(life, attachments));
                    }
                }
                let known = table.known().map(|known| (known.life, known.home.get()));
                let known: BTreeSet<_> = known.collect();
                let last = |homes: &Vec<u32>| homes[homes.len() - 1];
                let homes = naive.leases.iter().map(|(life, homes, _)| (*life, last(homes)));
                prop_assert_eq!(known, homes.collect());
                // A joining node may receive the table at any moment.
                let bytes = postcard::to_stdvec(&table).expect("numbers");
                prop_assert_eq!(postcard::from_bytes(&bytes), Ok(table.clone()));
            }
        }

        /// Clients publish through members that deliver late, and move to other members with their
        /// unacknowledged messages. Every message is delivered once, in each client's order.
        #[test]
        fn messages_of_moving_client_are_delivered_once(
            deeds in prop::collection::vec((0..3_usize, 0..4_u8, 0..3_usize), 0..200),
        ) {
            let mut table = ClientTable::default();
            // Each member's messages that the group has not yet delivered.
            let mut members: [VecDeque<(ClientLife, u64)>; 3] = Default::default();
            let publishing = |id| Publishing { life: life(id, 9), ..Publishing::default() };
            let mut clients = [0, 1, 2].map(publishing);
            for client in &clients {
                attach(&mut table, client.life, true, 0).expect("it is new");
            }
            let mut delivered: Vec<(ClientLife, u64)> = Vec::new();
            for (of, deed, member) in deeds {
                let client = &mut clients[of];
                match deed {
                    0 => client.publish(&mut members),
                    1 => {
                        client.member = member;
                        client.sent = client.acknowledged;
                        client.send(&mut members);
                    }
                    2 => client.acknowledged = table.clients[&client.life.id].next,
                    _ => deliver(&mut members[member], &mut table, &mut delivered),
                }
            }
            for client in &mut clients {
                client.sent = client.acknowledged;
                client.send(&mut members);
            }
            for member in &mut members {
                while !member.is_empty() {
                    deliver(member, &mut table, &mut delivered);
                }
            }
            for client in &clients {
                let of = delivered.iter().filter(|(life, _)| *life == client.life);
                prop_assert!(of.map(|(_, ordinal)| *ordinal).eq(0..client.published));
            }
        }
    }

    fn deliver(
        member: &mut VecDeque<(ClientLife, u64)>,
        table: &mut ClientTable,
        delivered: &mut Vec<(ClientLife, u64)>,
    ) {
        let Some((life, ordinal)) = member.pop_front() else { return };
        match table.message(life, ordinal, 0) {
            TableLookup::New => delivered.push((life, ordinal)),
            TableLookup::Duplicate => {}
            other => panic!("ordinal {ordinal} of {life:?} is {other:?}"),
        }
    }

    #[derive(Default)]
    struct Publishing {
        life: ClientLife,
        published: u64,
        acknowledged: u64,
        sent: u64,
        member: usize,
    }

    impl Publishing {
        fn publish(&mut self, members: &mut [VecDeque<(ClientLife, u64)>; 3]) {
            self.published += 1;
            self.send(members);
        }

        fn send(&mut self, members: &mut [VecDeque<(ClientLife, u64)>; 3]) {
            let sent = self.sent..self.published;
            members[self.member].extend(sent.map(|ordinal| (self.life, ordinal)));
            self.sent = self.published;
        }
    }
}
