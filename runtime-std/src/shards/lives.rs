//! The process of each node, and the incarnation under which the process is known.
//!
//! A process that starts without a disk learns its incarnation from other processes that know the
//! earlier processes of its node. It asks a quorum of them, so that if two processes ask, the later
//! one learns of the earlier one. The same holds for clients and the root group. Replicas of a
//! durable overlay save what they know.
//!
//! # Invariants
//! - The incarnation of a node only grows, and each incarnation belongs to one process.
//! - At most one process at a time holds a client's place.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{ClientNumber, NodeId};

use super::durable::KnownLives;
use super::places::Places;

/// The time for which a place is reserved for a client that has claimed it but not yet connected.
const CLAIM_HOLD: Duration = Duration::from_secs(10);

/// A process of a node, identified by its random number and its incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Life {
    pub(super) life: u64,
    pub(super) incarnation: u32,
}

/// Whether a node's place is taken.
#[derive(Clone, Copy, Debug)]
enum Hold {
    Present,
    Until(Instant),
    GivenBack,
}

/// The processes known for one node.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The node's newest process that has connected or been given an incarnation.
    newest: Option<(Life, Hold)>,
    /// A client that claims the place, and the time until which the place is reserved for that
    /// client. The client may never connect, because other replicas of the root may have given the
    /// place to another client.
    claim: Option<(Life, Instant)>,
}

/// Everything that this process knows about other processes.
#[derive(Debug)]
pub(super) struct Lives {
    lease: Duration,
    known: Mutex<BTreeMap<NodeId, Known>>,
    disk: Option<KnownLives>,
}

impl Lives {
    /// Starts with no knowledge. A place whose process has been lost stays reserved for the lease.
    pub(super) fn new(lease: Duration) -> Self {
        Self { lease, known: Mutex::default(), disk: None }
    }

    /// Starts with the processes on a disk, as if they had just disconnected.
    pub(super) fn on_disk(lease: Duration, mut disk: KnownLives, places: &Places) -> Self {
        let until = Instant::now() + lease;
        let found = disk.take_found().into_iter().map(|(node, life)| {
            let known = match places.client(node) {
                // It may only have claimed the place.
                Some(_) => Known { newest: None, claim: Some((life, until)) },
                None => Known { newest: Some((life, Hold::Until(until))), claim: None },
            };
            (node, known)
        });
        Self { lease, known: Mutex::new(found.collect()), disk: Some(disk) }
    }

    /// Saves processes, if there is a disk. Returns false if that fails.
    fn keep(&self, lives: &[(NodeId, Life)]) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.keep(lives))
    }

    /// Replaces everything known by the processes that form a group.
    pub(super) fn begin(&self, founders: &[(NodeId, Life)]) {
        let mut known = self.known();
        let present = |life: &Life| Some((*life, Hold::Present));
        *known = founders
            .iter()
            .map(|(node, life)| (*node, Known { newest: present(life), claim: None }))
            .collect();
        if self.disk.as_ref().is_some_and(|disk| !disk.keep_only(founders)) {
            tracing::error!("the processes that form the group are not saved");
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<NodeId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a process has connected. Returns false if a later process of its node is known,
    /// or a different process with the same incarnation.
    pub(super) fn comes(&self, node: NodeId, life: Life) -> bool {
        let mut known = self.known();
        let before = known.get(&node);
        let is_current = is_current(before, &life);
        if is_current {
            let is_earlier = |of: &Life| of.incarnation < life.incarnation;
            let is_new = before.and_then(Known::highest).is_none_or(|of| is_earlier(&of));
            if is_new && !self.keep(&[(node, life)]) {
                tracing::error!(%node, "the process of this node is not saved");
            }
            // A later claim remains, so that its incarnation is not given twice.
            let claim = before.and_then(|of| of.claim);
            let claim = claim.filter(|(of, _)| *of != life && !is_earlier(of));
            known.insert(node, Known { newest: Some((life, Hold::Present)), claim });
        }
        is_current
    }

    /// Returns whether a process of this node has connected or been given an incarnation.
    pub(super) fn knows(&self, node: NodeId) -> bool {
        self.known().get(&node).is_some_and(|known| known.newest.is_some())
    }

    /// Returns whether a process is the newest one known for its node.
    pub(super) fn is_current(&self, node: NodeId, life: Life) -> bool {
        is_current(self.known().get(&node), &life)
    }

    /// Records that the connection to a process has been lost.
    pub(super) fn goes(&self, node: NodeId, life: u64) {
        if let Some(Known { newest: Some((of, hold)), .. }) = self.known().get_mut(&node)
            && of.life == life
        {
            *hold = Hold::Until(Instant::now() + self.lease);
        }
    }

    /// Assigns an incarnation of at least `at_least` to a process of a node: the one that it
    /// already has, or one more than that of any earlier process. Returns the incarnation, or zero
    /// if it cannot be saved.
    pub(super) fn stand(&self, node: NodeId, life: u64, at_least: u32) -> u32 {
        let mut known = self.known();
        let next = match known.get(&node).and_then(|known| known.newest) {
            None => at_least.max(1),
            Some((before, _)) if before.life == life => before.incarnation.max(at_least),
            Some((before, _)) => before.incarnation.saturating_add(1).max(at_least),
        };
        let life = Life { life, incarnation: next };
        if !self.keep(&[(node, life)]) {
            return 0;
        }
        known.insert(node, Known { newest: Some((life, self.away())), claim: None });
        next
    }

    /// Returns the clients' processes, for a returning replica.
    pub(super) fn clients(&self, places: &Places) -> Vec<(u16, Life)> {
        let known = self.known();
        let of_client =
            |(node, known): (&NodeId, &Known)| Some((places.client(*node)?.0, known.highest()?));
        known.iter().filter_map(of_client).collect()
    }

    /// Adopts another replica's knowledge of clients, as if they had just claimed their places.
    pub(super) fn learn(&self, places: &Places, clients: &[(u16, Life)]) {
        let mut known = self.known();
        let clients =
            clients.iter().map(|(number, life)| (places.client_node(ClientNumber(*number)), *life));
        let learned: Vec<(NodeId, Life)> = clients
            .filter(|(node, life)| {
                let highest = known.get(node).and_then(Known::highest);
                let is_later = highest.is_none_or(|of| of.incarnation < life.incarnation);
                places.client(*node).is_some() && is_later
            })
            .collect();
        if !self.keep(&learned) {
            tracing::error!("the processes of clients are not saved");
        }
        let until = Instant::now() + self.lease;
        for (node, life) in learned {
            let newest = known.get(&node).and_then(|of| of.newest);
            known.insert(node, Known { newest, claim: Some((life, until)) });
        }
    }

    /// Returns the client places that have ever been taken, with the incarnation of each and
    /// whether the place is free.
    pub(super) fn seats(&self, places: &Places) -> Vec<Seat> {
        let (known, now) = (self.known(), Instant::now());
        let seat = |(node, known): (&NodeId, &Known)| {
            let number = places.client(*node)?.0;
            let incarnation = known.highest()?.incarnation;
            Some(Seat { number, incarnation, is_free: known.is_free(now) })
        };
        known.iter().filter_map(seat).collect()
    }

    /// Reserves a place for a client. Returns false if another client has the place, or has had it
    /// with this incarnation or a later one.
    pub(super) fn claim(&self, node: NodeId, life: Life) -> bool {
        let (mut known, now) = (self.known(), Instant::now());
        let place = known.entry(node).or_insert(Known { newest: None, claim: None });
        let is_its_own = place.claim.is_some_and(|(of, _)| of == life);
        let is_later = place.highest().is_none_or(|of| of.incarnation < life.incarnation);
        let is_to_be_had = is_its_own || (place.is_free(now) && is_later);
        let is_to_be_had = is_to_be_had && self.keep(&[(node, life)]);
        if is_to_be_had {
            place.claim = Some((life, now + CLAIM_HOLD));
        }
        is_to_be_had
    }

    /// Releases the place of a client that is returning it.
    pub(super) fn give_back(&self, node: NodeId, life: u64) {
        let mut known = self.known();
        let Some(place) = known.get_mut(&node) else { return };
        if let Some((of, until)) = &mut place.claim
            && of.life == life
        {
            *until = Instant::now();
        }
        if let Some((of, hold)) = &mut place.newest
            && of.life == life
        {
            *hold = Hold::GivenBack;
        }
    }

    fn away(&self) -> Hold {
        Hold::Until(Instant::now() + self.lease)
    }
}

/// A client's place, as known to one replica of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seat {
    pub(super) number: u16,
    pub(super) incarnation: u32,
    pub(super) is_free: bool,
}

impl Known {
    /// Returns the process with the highest incarnation, whether or not it has connected.
    fn highest(&self) -> Option<Life> {
        let lives = [self.newest.map(|(life, _)| life), self.claim.map(|(life, _)| life)];
        lives.into_iter().flatten().max_by_key(|life| life.incarnation)
    }

    fn is_free(&self, now: Instant) -> bool {
        let is_unclaimed = self.claim.is_none_or(|(_, until)| now >= until);
        is_unclaimed
            && match self.newest {
                None | Some((_, Hold::GivenBack)) => true,
                Some((_, Hold::Present)) => false,
                Some((_, Hold::Until(until))) => now >= until,
            }
    }
}

/// Returns whether a process may follow the known ones. A process that has merely claimed the place
/// does not count, because a quorum of others may have given the place to this one.
fn is_current(known: Option<&Known>, life: &Life) -> bool {
    let newest = known.and_then(|known| known.newest);
    newest.is_none_or(|(before, _)| life.incarnation > before.incarnation || *life == before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::description::Description;

    const X: NodeId = NodeId(3);

    fn places() -> Places {
        let description = Description::local("lives", &[None], 3);
        Places::new(&description, description.overlay().expect("a tree"))
    }

    #[test]
    fn each_process_gets_a_higher_incarnation() {
        let lives = Lives::new(Duration::ZERO);
        assert_eq!(lives.stand(X, 70, 0), 1);
        assert_eq!(lives.stand(X, 70, 0), 1, "the same life asks again");
        assert_eq!(lives.stand(X, 71, 0), 2);
        assert_eq!(lives.stand(X, 71, 5), 5, "another replica knew of four");
        assert!(lives.comes(X, Life { life: 71, incarnation: 5 }));
        assert!(!lives.comes(X, Life { life: 70, incarnation: 1 }), "a life of before");
        assert!(!lives.comes(X, Life { life: 72, incarnation: 5 }), "one that does not know");
        assert!(lives.comes(X, Life { life: 72, incarnation: 6 }));
    }

    #[test]
    fn client_place_has_only_one_holder() {
        let (lives, places) = (Lives::new(Duration::from_secs(60)), places());
        let node = places.client_node(ClientNumber(0));
        let (one, other) = (Life { life: 1, incarnation: 1 }, Life { life: 2, incarnation: 2 });
        assert!(lives.claim(node, one) && lives.claim(node, one));
        assert!(!lives.claim(node, other), "it is held");
        assert!(lives.comes(node, one) && !lives.claim(node, other), "it is there");
        lives.goes(node, 1);
        assert!(!lives.claim(node, other), "the lease is not over");
        lives.give_back(node, 7);
        assert!(!lives.claim(node, other), "nobody else gives it back");
        lives.give_back(node, 1);
        assert!(!lives.claim(node, Life { life: 2, incarnation: 1 }), "which was another's");
        assert!(lives.claim(node, other));
        let seat = Seat { number: 0, incarnation: 2, is_free: false };
        assert_eq!(lives.seats(&places), [seat]);
    }

    /// Two clients claim the same place, and a minority gives it to the client that does not get
    /// it.
    #[test]
    fn failed_claim_does_not_block_client_place() {
        let lives = Lives::new(Duration::from_secs(60));
        let node = places().client_node(ClientNumber(0));
        let (one, other) = (Life { life: 1, incarnation: 1 }, Life { life: 2, incarnation: 1 });
        assert!(lives.claim(node, other) && !lives.claim(node, one));
        assert!(lives.comes(node, one), "a quorum of the others has given it to this one");
        lives.give_back(node, 2);
        assert!(!lives.comes(node, other) && !lives.claim(node, Life { life: 3, incarnation: 2 }));
    }

    /// A returning replica cannot know which client of two got the place.
    #[test]
    fn learned_claim_does_not_block_client_place() {
        let (lives, places) = (Lives::new(Duration::from_secs(60)), places());
        let node = places.client_node(ClientNumber(0));
        let (one, other) = (Life { life: 1, incarnation: 1 }, Life { life: 2, incarnation: 1 });
        lives.learn(&places, &[(0, other)]);
        assert!(!lives.claim(node, Life { life: 3, incarnation: 2 }), "it is reserved");
        assert!(lives.comes(node, one) && !lives.comes(node, other));
    }

    /// The place was given to another client while the first one was away. If the first one returns
    /// before the other connects, the other's incarnation is still not given again.
    #[test]
    fn claimed_incarnation_is_not_given_twice() {
        let (lives, places) = (Lives::new(Duration::ZERO), places());
        let node = places.client_node(ClientNumber(0));
        let (one, other) = (Life { life: 1, incarnation: 1 }, Life { life: 2, incarnation: 2 });
        assert!(lives.comes(node, one));
        lives.goes(node, 1);
        assert!(lives.claim(node, other) && lives.comes(node, one));
        lives.goes(node, 1);
        assert_eq!(lives.seats(&places)[0].incarnation, 2);
        assert!(!lives.claim(node, Life { life: 3, incarnation: 2 }));
        assert!(lives.comes(node, other));
    }

    #[test]
    fn expired_lease_frees_client_place() {
        let lives = Lives::new(Duration::ZERO);
        let node = places().client_node(ClientNumber(1));
        assert!(lives.comes(node, Life { life: 1, incarnation: 4 }));
        lives.goes(node, 2);
        assert!(!lives.claim(node, Life { life: 2, incarnation: 5 }), "another's connection went");
        lives.goes(node, 1);
        assert!(lives.claim(node, Life { life: 2, incarnation: 5 }));
    }

    #[test]
    fn returning_replica_learns_of_clients() {
        let (lives, places) = (Lives::new(Duration::from_secs(60)), places());
        let node = places.client_node(ClientNumber(2));
        lives.comes(node, Life { life: 9, incarnation: 3 });
        lives.comes(NodeId(1), Life { life: 8, incarnation: 3 });
        let again = Lives::new(Duration::from_secs(60));
        again.learn(&places, &lives.clients(&places));
        again.learn(
            &places,
            &[(2, Life { life: 5, incarnation: 1 }), (999, Life { life: 1, incarnation: 1 })],
        );
        assert_eq!(again.clients(&places), lives.clients(&places));
        assert!(!again.claim(node, Life { life: 10, incarnation: 4 }), "it may be there still");
    }
}
