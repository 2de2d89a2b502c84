//! Ids for views: CPG has none.
//!
//! Corosync lists the members of a group after each change, and, apart from that, says which ring
//! the daemons form. A view's id is made of both, so that it is the same at all that install the
//! view, whatever they have seen before, and another for each other view. In decimal digits, from
//! the left:
//!
//! | digits | what |
//! |---|---|
//! | all but the last eight | `seq` of the ring; it rises with each ring of a node, over restarts too |
//! | three | the ring's leader: two rings that come of one that broke may have the same `seq` |
//! | five | which change of this group in this ring it is, below |
//!
//! When a ring has formed, CPG tells a group of at most two changes, at once, before the ring's id
//! and before any message of the new ring: the members that did not come along from the old ring,
//! then those that came into it.
//! - The first, place 1 to 255: the lowest node in it. Parts of several old rings come together,
//!   and each part is told its own; they have no node in common.
//! - The second, place 500: the same for all.
//!
//! Later changes in this ring are single processes that join and leave. They come in one order at
//! all members, between the same messages. Their places are 1000, 1001 and so on, which members
//! count. A joiner does not know how many there were before it: the [`Registry`] has that number.
//!
//! Nothing here compares what members saw. Where Corosync tells two members different things, their
//! ids or members differ, and the checks say so.

mod registry;

pub use registry::Registry;

use crate::cpg::{Address, Change, Reason, Ring};

const PLACE_AFTER_ARRIVALS: u64 = 500;
const PLACE_OF_FIRST_CHANGE: u64 = 1000;
const PLACES: u64 = 100_000;
const LEADERS: u64 = 1_000;

/// A view, numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its id.
    pub id: u64,
    /// Its members.
    pub members: Vec<Address>,
}

/// How a change came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A new ring, and not all of the old one are in it.
    Departures,
    /// A new ring, and some were not in the old one.
    Arrivals,
    /// A process joined or left, within a ring.
    Process,
}

/// Numbers the views of one group at one member.
#[derive(Debug)]
pub struct Numbering {
    myself: Address,
    registry: Registry,
    ring: Option<Ring>,
    /// The place of the next change within the ring; nothing as long as this member cannot know it.
    next_place: Option<u64>,
    /// Changes whose ring is not known yet.
    held: Vec<Change>,
}

impl Numbering {
    /// Nothing was told yet.
    #[must_use]
    pub fn new(myself: Address, registry: Registry) -> Self {
        Self { myself, registry, ring: None, next_place: None, held: Vec::new() }
    }

    /// Whether a change waits for its ring. Corosync tells nothing else before that.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// The membership changed: the view that can be numbered at once, if it can.
    pub fn change(&mut self, change: Change) -> Option<View> {
        match (cause(&change), self.ring) {
            (Cause::Process, Some(ring)) if self.held.is_empty() => {
                Some(self.process(ring, change))
            }
            _ => {
                self.held.push(change);
                None
            }
        }
    }

    /// The ring is known: the views that waited for it.
    pub fn ring(&mut self, ring: Ring) -> Vec<View> {
        let is_new = self.ring.replace(ring) != Some(ring);
        if is_new && self.next_place.is_some() {
            // A member of a group when a ring forms is told of all changes in it.
            self.next_place = Some(PLACE_OF_FIRST_CHANGE);
        }
        let held = std::mem::take(&mut self.held);
        held.into_iter().map(|change| self.number(ring, change)).collect()
    }

    fn number(&mut self, ring: Ring, change: Change) -> View {
        let place = match cause(&change) {
            Cause::Process => return self.process(ring, change),
            Cause::Departures => {
                change.members.iter().map(|member| u64::from(member.nodeid)).min().unwrap_or(0)
            }
            Cause::Arrivals => PLACE_AFTER_ARRIVALS,
        };
        View { id: id(ring, place), members: change.members }
    }

    fn process(&mut self, ring: Ring, change: Change) -> View {
        let place = match self.next_place {
            Some(next) => self.registry.agree(ring, &change, next),
            None if change.members.iter().any(|member| *member != self.myself) => {
                self.registry.learn(ring, &change, PLACE_OF_FIRST_CHANGE)
            }
            None => self.registry.follow(ring, &change, PLACE_OF_FIRST_CHANGE),
        };
        self.next_place = Some(place + 1);
        View { id: id(ring, place), members: change.members }
    }
}

fn cause(change: &Change) -> Cause {
    let of_ring =
        |(_, reason): &(Address, Reason)| matches!(reason, Reason::NodeDown | Reason::NodeUp);
    if change.joined.iter().any(of_ring) {
        Cause::Arrivals
    } else if change.left.iter().any(of_ring) {
        Cause::Departures
    } else {
        Cause::Process
    }
}

fn id(ring: Ring, place: u64) -> u64 {
    (ring.seq * LEADERS + u64::from(ring.nodeid)) * PLACES + place
}

#[cfg(test)]
mod tests;
