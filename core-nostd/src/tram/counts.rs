//! The counts that all replicas of a group derive in the same way from the entries that they have
//! processed: the number of messages taken from each source, the open clients, and the number of
//! messages passed on to each child.
//!
//! A leader keeps a second set of these numbers, up to the end of its log, because its next
//! proposals must continue them (TRM-6). The same function computes both.
//!
//! # Invariants
//! - Messages of one source have consecutive ordinals, and those for one child have consecutive
//!   positions.
//! - A client's ordinals start at zero with each incarnation.
//!
//! Requirement: TRM-1.

use super::entry::{Content, Entry, Source};
use super::overlay::CHILDREN_MAX;
use super::progress::Halt;
use crate::ids::{ClientNumber, Ordinal, Rank};

/// The counts of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceCount {
    /// Ordinal of the source's next message.
    pub(super) next: Ordinal,
    /// For a client: the incarnation whose messages are taken. For the parent: the rank of the
    /// leader of the last null, plus one.
    pub(super) incarnation: u32,
    pub(super) is_open: bool,
}

/// Returns a parent's leader in the form of [`SourceCount::incarnation`].
pub(super) fn parent_leader(rank: Option<Rank>) -> u32 {
    rank.map_or(0, |rank| u32::from(rank.0).saturating_add(1))
}

/// A replica's state for one source. The caller lends one for the parent and one per client to the
/// replica.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceState {
    pub(super) taken: SourceCount,
    pub(super) proposed: SourceCount,
}

/// The end of the counted entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpTo {
    /// The delivered entries.
    Delivered,
    /// The entries in the local log.
    Proposed,
}

/// The counts of all sources and children.
#[derive(Debug)]
pub(super) struct Counts<'s> {
    sources: &'s mut [SourceState],
    /// Next position for each child: delivered, and proposed.
    children: heapless::Vec<(Ordinal, Ordinal), CHILDREN_MAX>,
}

/// The error for an entry that does not continue the counted entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotContinued;

impl From<NotContinued> for Halt {
    fn from(_: NotContinued) -> Self {
        Self::NotContinued
    }
}

impl<'s> Counts<'s> {
    pub(super) fn new(sources: &'s mut [SourceState], children: usize) -> Self {
        sources.fill(SourceState::default());
        let mut positions = heapless::Vec::new();
        // The resize cannot fail: no group of an overlay has more children.
        let _ = positions.resize(children, (Ordinal::ZERO, Ordinal::ZERO));
        Self { sources, children: positions }
    }

    pub(super) fn source(&self, source: Source, up_to: UpTo) -> SourceCount {
        let state = self.sources.get(source.index()).copied().unwrap_or_default();
        match up_to {
            UpTo::Delivered => state.taken,
            UpTo::Proposed => state.proposed,
        }
    }

    pub(super) fn client(&self, client: ClientNumber, up_to: UpTo) -> SourceCount {
        self.source(Source::Client(client), up_to)
    }

    pub(super) fn child(&self, child: usize, up_to: UpTo) -> Ordinal {
        let (delivered, proposed) = self.children.get(child).copied().unwrap_or_default();
        match up_to {
            UpTo::Delivered => delivered,
            UpTo::Proposed => proposed,
        }
    }

    /// Resets the proposed counts to the delivered counts.
    pub(super) fn forget_proposed(&mut self) {
        // bound: the sources: the parent and each client
        for state in self.sources.iter_mut() {
            state.proposed = state.taken;
        }
        // bound: the children
        for (delivered, proposed) in &mut self.children {
            *proposed = *delivered;
        }
    }

    /// Counts an entry if it continues the counted ones.
    pub(super) fn count(&mut self, entry: &Entry, up_to: UpTo) -> Result<(), NotContinued> {
        // bound: the children
        for child in 0..self.children.len() {
            let position = entry.position(child);
            if position.is_some_and(|position| position != self.child(child, up_to)) {
                return Err(NotContinued);
            }
        }
        self.count_content(&entry.content, up_to)?;
        // bound: the children
        for (child, (delivered, proposed)) in self.children.iter_mut().enumerate() {
            let Some(position) = entry.position(child) else { continue };
            match up_to {
                UpTo::Delivered => *delivered = position.next(),
                UpTo::Proposed => *proposed = position.next(),
            }
        }
        Ok(())
    }

    fn count_content(&mut self, content: &Content, up_to: UpTo) -> Result<(), NotContinued> {
        match *content {
            Content::Message(message) => {
                let count = self.source_mut(message.source, up_to).ok_or(NotContinued)?;
                let is_its_own = match message.source {
                    Source::Parent => true,
                    Source::Client(client) => {
                        count.is_open
                            && message.id.client == client
                            && message.id.incarnation == count.incarnation
                    }
                };
                if !is_its_own || count.next != message.ordinal {
                    return Err(NotContinued);
                }
                count.next = message.ordinal.next();
                if message.source == Source::Parent
                    && let Some(timestamp) = message.id.null_of()
                {
                    count.incarnation = parent_leader(timestamp.rank());
                }
            }
            Content::Open { client, incarnation } => {
                let count = self.source_mut(Source::Client(client), up_to).ok_or(NotContinued)?;
                *count = SourceCount { next: Ordinal::ZERO, incarnation, is_open: true };
            }
            Content::Close { client, incarnation } => {
                let count = self.source_mut(Source::Client(client), up_to).ok_or(NotContinued)?;
                count.is_open = count.is_open && count.incarnation != incarnation;
            }
            Content::Admit { .. } | Content::Null { .. } => {}
        }
        Ok(())
    }

    fn source_mut(&mut self, source: Source, up_to: UpTo) -> Option<&mut SourceCount> {
        let state = self.sources.get_mut(source.index())?;
        Some(match up_to {
            UpTo::Delivered => &mut state.taken,
            UpTo::Proposed => &mut state.proposed,
        })
    }

    /// Returns the number of cells in a snapshot of the counts.
    pub(super) fn cells(&self) -> usize {
        self.sources.len().saturating_mul(2).saturating_add(self.children.len())
    }

    /// Stores the delivered counts. Returns `None` if the number of cells does not match.
    pub(super) fn save(&self, cells: &mut [u64]) -> Option<()> {
        let mut cells = cells.iter_mut();
        // bound: the sources
        for state in self.sources.iter() {
            let taken = state.taken;
            *cells.next()? = taken.next.0;
            *cells.next()? = (u64::from(taken.incarnation) << 1) | u64::from(taken.is_open);
        }
        // bound: the children
        for (delivered, _) in &self.children {
            *cells.next()? = delivered.0;
        }
        cells.next().is_none().then_some(())
    }

    /// Restores the counts that another replica saved. If the number of cells does not match, or if
    /// one of them is invalid, returns `None` and changes nothing.
    pub(super) fn restore(&mut self, cells: &[u64]) -> Option<()> {
        let of_sources = cells.get(..self.sources.len().saturating_mul(2))?;
        let mut standings = of_sources.iter().skip(1).step_by(2);
        let is_right = standings.all(|standing| standing >> 1 <= u64::from(u32::MAX));
        if cells.len() != self.cells() || !is_right {
            return None;
        }
        let mut cells = cells.iter().copied();
        // bound: the sources
        for state in self.sources.iter_mut() {
            let next = Ordinal(cells.next()?);
            let standing = cells.next()?;
            let incarnation = u32::try_from(standing >> 1).unwrap_or(0);
            state.taken = SourceCount { next, incarnation, is_open: standing & 1 == 1 };
        }
        // bound: the children
        for (delivered, _) in &mut self.children {
            *delivered = Ordinal(cells.next()?);
        }
        self.forget_proposed();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Rank;
    use crate::tram::entry::{Message, MessageId, Positions};
    use crate::tram::overlay::Destinations;
    use crate::tram::timestamp::Timestamp;

    fn message(source: Source, incarnation: u32, ordinal: u64, position: Option<u64>) -> Entry {
        let client = ClientNumber(0);
        let content = Content::Message(Message {
            source,
            ordinal: Ordinal(ordinal),
            id: MessageId { client, incarnation, number: ordinal },
            destinations: Destinations(1),
            length: 0,
        });
        Entry { content, positions: Positions::from_slice(&[position.map(Ordinal)]).expect("one") }
    }

    fn change(content: Content) -> Entry {
        Entry { content, positions: Positions::new() }
    }

    #[test]
    fn client_messages_count_only_while_registration_is_open() {
        let client = ClientNumber(0);
        let source = Source::Client(client);
        let mut sources = [SourceState::default(); 2];
        let mut counts = Counts::new(&mut sources, 1);
        let up_to = UpTo::Delivered;
        let mut count = |entry: Entry| counts.count(&entry, up_to);
        assert_eq!(count(message(source, 1, 0, None)), Err(NotContinued), "not open");
        assert_eq!(count(change(Content::Open { client, incarnation: 1 })), Ok(()));
        assert_eq!(count(message(source, 2, 0, None)), Err(NotContinued), "of another");
        assert_eq!(count(message(source, 1, 0, Some(0))), Ok(()));
        assert_eq!(count(message(source, 1, 0, None)), Err(NotContinued), "twice");
        assert_eq!(count(message(source, 1, 1, Some(0))), Err(NotContinued), "a position twice");
        assert_eq!(count(change(Content::Close { client, incarnation: 9 })), Ok(()));
        assert_eq!(count(message(source, 1, 1, Some(1))), Ok(()), "another was closed");
        assert_eq!(count(change(Content::Close { client, incarnation: 1 })), Ok(()));
        assert_eq!(count(message(source, 1, 2, None)), Err(NotContinued), "closed");
        assert_eq!(count(change(Content::Close { client, incarnation: 1 })), Ok(()));
        assert_eq!(count(message(source, 1, 2, None)), Err(NotContinued), "closed twice");
        assert_eq!(count(change(Content::Open { client, incarnation: 2 })), Ok(()));
        assert_eq!(count(message(source, 2, 0, None)), Ok(()), "begins at zero");
        let stranger = Source::Client(ClientNumber(1));
        assert_eq!(count(message(stranger, 1, 0, None)), Err(NotContinued), "no such source");
        assert_eq!(count(change(Content::Admit { rank: Rank(1), incarnation: 1 })), Ok(()));
        assert_eq!(counts.child(0, UpTo::Delivered), Ordinal(2));
        assert_eq!(counts.child(0, UpTo::Proposed), Ordinal(0));
    }

    /// Messages that a leader of the parent passed on early are taken until another leader's null
    /// arrives.
    #[test]
    fn latest_null_determines_the_parents_leader() {
        let mut sources = [SourceState::default(); 2];
        let mut counts = Counts::new(&mut sources, 1);
        let up_to = UpTo::Delivered;
        let mut leader = |entry: &Entry| {
            counts.count(entry, up_to).expect("it continues");
            counts.source(Source::Parent, up_to).incarnation
        };
        assert_eq!(leader(&message(Source::Parent, 0, 0, None)), 0, "no null was there");
        let mut null = message(Source::Parent, 0, 1, None);
        let timestamp = Timestamp::new(5, 1, Rank(2));
        if let Content::Message(message) = &mut null.content {
            message.id = MessageId::of_null(timestamp);
        }
        assert_eq!(leader(&null), parent_leader(Some(Rank(2))));
        assert_eq!(leader(&message(Source::Parent, 0, 2, None)), parent_leader(Some(Rank(2))));
    }

    #[test]
    fn saved_counts_are_restored() {
        let mut sources = [SourceState::default(); 3];
        let mut counts = Counts::new(&mut sources, 2);
        // The highest possible values.
        let (client, incarnation) = (ClientNumber(1), u32::MAX);
        counts.count(&change(Content::Open { client, incarnation }), UpTo::Delivered).expect("");
        counts.count(&message(Source::Parent, 0, 0, Some(0)), UpTo::Delivered).expect("");
        let mut cells = [0; 8];
        assert_eq!(counts.cells(), 8);
        assert_eq!(counts.save(&mut cells[..7]), None);
        assert_eq!(counts.save(&mut cells), Some(()));
        let mut others = [SourceState::default(); 3];
        let mut restored = Counts::new(&mut others, 2);
        assert_eq!(restored.restore(&cells[..7]), None);
        assert_eq!(restored.restore(&cells), Some(()));
        assert_eq!(restored.source(Source::Parent, UpTo::Proposed).next, Ordinal(1));
        let opened = restored.client(client, UpTo::Delivered);
        assert!(opened.is_open && opened.incarnation == incarnation);
        assert_eq!(restored.child(0, UpTo::Delivered), Ordinal(1));
        let mut changed = cells;
        // The first ordinal differs, and the last source's incarnation is invalid.
        (changed[0], changed[5]) = (9, u64::MAX);
        assert_eq!(restored.restore(&changed), None);
        assert_eq!(restored.source(Source::Parent, UpTo::Delivered).next, Ordinal(1), "as before");
    }
}
