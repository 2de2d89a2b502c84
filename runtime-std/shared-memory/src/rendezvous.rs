//! The barrier before the first post (VIE-12): members come in any order, find each other, and all
//! start the same run, or each says why it cannot.
//!
//! Every member publishes one number, its *run*: a digest of all members' incarnations as it sees
//! them alive at that moment, or zero while it misses one. It goes on when all members show its own
//! number.
//!
//! - So a member that goes on knows that every other member saw the very same set of starts.
//! - Two runs cannot share a member: it shows one number at a time, and once it went on it never
//!   changes it.
//! - A member that was restarted while the others run has a new incarnation; the others' numbers,
//!   which are fixed, do not hold it. It waits, and then says that they belong to an earlier run.
//!   The same goes for one that was replaced while the group was half through the barrier: nobody
//!   mixes the two.
//!
//! A number of 64 bits made of random ones stands for the whole set; two sets meet by chance never.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_core::fabric::ViewPlan;
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::Layout;

use super::error::Error;
use super::files::OwnFiles;
use super::folder::Patience;
use super::futex::Fences;
use super::header::{Header, Identity, State};
use super::map::Map;
use super::mappings::{Mappings, Membership};
use super::peer::{Peer, PeerFiles};
use super::residence::Residence;
use super::root::{GroupName, Root, random};
use super::row_plan::RowPlan;
use super::space::group_bytes;

/// Between two looks at the folder.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How long a refused member stays visible, so that the one it does not match can say so too.
const LINGER: Duration = Duration::from_millis(100);

/// Between two log lines about the members that are missing.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// What a member needs to know to join its group.
#[derive(Clone, Debug)]
pub struct Rendezvous<'r> {
    root: &'r Root,
    group: &'r GroupName,
    plan: RowPlan,
    own: Rank,
    fences: Fences,
}

impl<'r> Rendezvous<'r> {
    /// For the member of rank `own` in a layout that all members have alike.
    ///
    /// # Errors
    /// [`Error::NotAMember`] if the layout has no such rank.
    pub fn new(
        root: &'r Root,
        group: &'r GroupName,
        layout: &Layout<'_>,
        own: Rank,
    ) -> Result<Self, Error> {
        // A fixed membership has one view, of whatever id.
        Self::of_rows(root, group, &ViewPlan::of_layout(ViewId::default(), own, layout))
    }

    /// The same for rows that are planned otherwise: with blocks, or without a layout.
    ///
    /// # Errors
    /// [`Error::NotAMember`] if there is no such rank.
    pub fn of_rows(
        root: &'r Root,
        group: &'r GroupName,
        plan: &ViewPlan<'_>,
    ) -> Result<Self, Error> {
        let (own, plan) = (plan.own(), RowPlan::new(plan));
        let members = plan.members().len();
        if own.index() >= members {
            return Err(Error::NotAMember { rank: own, members });
        }
        Ok(Self { root, group, plan, own, fences: Fences::default() })
    }

    /// Chooses which end pays for the doorbell's fences. Members may differ.
    #[must_use]
    pub fn with_fences(mut self, fences: Fences) -> Self {
        self.fences = fences;
        self
    }

    /// Bytes of shared memory that the whole group takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        group_bytes(self.plan.files_bytes())
    }

    /// Joins the group: makes the own files, waits until all members are there and agree on the
    /// run, at most for `time_limit`, and gives the rows of all. `cancel` ends the wait within
    /// milliseconds.
    ///
    /// Upon an error nothing of this member is left in shared memory.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn join(&self, time_limit: Duration, cancel: &AtomicBool) -> Result<Mappings, Error> {
        let started = Instant::now();
        let patience = Patience { until: started + time_limit, cancel };
        let id = self.plan.members()[self.own.index()];
        let files = OwnFiles::claim(self.root, self.group, id, self.bytes(), &patience)?;
        let (row, bell) = files.map(self.plan.file_bytes(self.own), &patience)?;
        let identity = Identity {
            digest: self.plan.digest(),
            node: u64::from(id.get()),
            incarnation: random(),
            sleeper_barrier: self.fences.sleeper_barrier(),
        };
        let own = Own { files, row, bell, identity };
        Header::new(&own.row).write(&own.identity);
        let mut waiting =
            Waiting { rendezvous: self, own: &own, peers: self.nobody(), reported: started };
        loop {
            patience.check()?;
            match waiting.look() {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    std::thread::sleep(LINGER);
                    return Err(error);
                }
            }
            if patience.is_over() {
                return Err(waiting.why_not(started.elapsed()));
            }
            waiting.report();
            std::thread::sleep(LOOK_INTERVAL);
        }
        Header::new(&own.row).set_state(State::Running);
        let peers = std::mem::take(&mut waiting.peers);
        tracing::debug!(group = %self.group, member = %id, after = ?started.elapsed(), "all members are there");
        Ok(self.mappings(own, peers))
    }

    /// One empty place a member.
    fn nobody(&self) -> Vec<Option<Found>> {
        std::iter::repeat_with(|| None).take(self.plan.members().len()).collect()
    }

    /// Puts the members' maps together, in rank order.
    fn mappings(&self, own: Own, found: Vec<Option<Found>>) -> Mappings {
        let Own { files, row, bell, identity } = own;
        let ids = self.plan.members();
        let (mut rows, mut met) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()));
        for place in found {
            // The only rank at which nobody was found is the own one.
            let (row, peer) = match place {
                Some(Found { files, row, bell, .. }) => {
                    (row, Some(Arc::new(Peer::new(files, bell))))
                }
                None => (Arc::clone(&row), None),
            };
            rows.push(row);
            met.push(peer);
        }
        let id = ids.get(self.own.index()).copied().unwrap_or_default();
        let peers = met.iter().flatten().cloned().collect();
        let residence = Residence::new(id, files, row, bell, identity, peers);
        Mappings::over(Membership::fixed(residence, self.own, self.plan.clone(), rows, met))
    }
}

/// This member's side of the barrier.
struct Own {
    files: OwnFiles,
    row: Arc<Map>,
    bell: Arc<Map>,
    identity: Identity,
}

/// A peer that was found alive and of the same layout, with its maps.
struct Found {
    files: PeerFiles,
    row: Arc<Map>,
    bell: Arc<Map>,
    incarnation: u64,
}

/// A member that waits for the others.
struct Waiting<'w> {
    rendezvous: &'w Rendezvous<'w>,
    own: &'w Own,
    /// By rank; none for the own one, and for those that are not there.
    peers: Vec<Option<Found>>,
    reported: Instant,
}

impl Waiting<'_> {
    /// One look at everybody. True if all agree on the run.
    fn look(&mut self) -> Result<bool, Error> {
        for rank in self.others() {
            self.look_for(rank)?;
        }
        let run = self.run();
        Header::new(&self.own.row).set_run(run);
        Ok(run != 0 && self.peers.iter().flatten().all(|peer| peer.files.header().run() == run))
    }

    /// Finds a peer, or finds that it went.
    fn look_for(&mut self, rank: Rank) -> Result<(), Error> {
        let folder = &self.own.files.folder;
        let failed = |errno| Error::from_errno("cannot look for a member in", folder.path(), errno);
        let place = &mut self.peers[rank.index()];
        if let Some(peer) = place {
            if peer.files.is_live().map_err(failed)? {
                return Ok(());
            }
            *place = None;
        }
        let id = self.rendezvous.plan.members()[rank.index()];
        let Some(files) = PeerFiles::find(folder, id).map_err(failed)? else { return Ok(()) };
        let header = files.header();
        // Who runs already belongs to an earlier run, whatever its layout; `why_not` finds it
        // again.
        if header.state() == State::Forming {
            if !header.is_of_this_format() {
                return Err(Error::WrongVersion { peer: id });
            }
            if header.digest() != self.own.identity.digest {
                return Err(Error::WrongDigest { peer: id });
            }
        } else if !header.is_of_this_format() || header.digest() != self.own.identity.digest {
            return Ok(());
        }
        let incarnation = header.incarnation();
        let bytes = self.rendezvous.plan.file_bytes(rank);
        let bell = files.map_bell(folder).map_err(failed)?;
        if let (Some(bell), Some(row)) = (bell, files.map_row(bytes).map_err(failed)?) {
            *place = Some(Found { files, row: Arc::new(row), bell, incarnation });
        }
        Ok(())
    }

    /// The run as this member sees it now; zero while somebody is missing.
    fn run(&self) -> u64 {
        let mut run = self.own.identity.digest;
        for (index, place) in self.peers.iter().enumerate() {
            let incarnation = match place {
                Some(peer) => peer.incarnation,
                None if index == self.rendezvous.own.index() => self.own.identity.incarnation,
                None => return 0,
            };
            run = mix(run ^ incarnation);
        }
        run.max(1)
    }

    /// Why the group did not form, now that the time is up.
    fn why_not(&self, waited: Duration) -> Error {
        let group = self.rendezvous.group.to_string();
        let run = self.run();
        let (mut missing, mut ending, mut silent) = (Vec::new(), Vec::new(), Vec::new());
        for rank in self.others() {
            let id = self.rendezvous.plan.members()[rank.index()];
            let found = PeerFiles::find(&self.own.files.folder, id).ok().flatten();
            match found.as_ref().map(PeerFiles::header) {
                None => missing.push(id),
                Some(header)
                    if header.state() == State::Running && (run == 0 || header.run() != run) =>
                {
                    ending.push(id);
                }
                Some(header) if header.run() != run => silent.push(id),
                Some(_) => {}
            }
        }
        if !ending.is_empty() {
            Error::StillEnding { group, peers: ending }
        } else if !missing.is_empty() {
            Error::MissingMembers { group, missing, waited }
        } else {
            Error::NotAnswering { group, peers: silent }
        }
    }

    /// Says in the log, now and then, which members are still missing.
    fn report(&mut self) {
        if self.reported.elapsed() < REPORT_INTERVAL {
            return;
        }
        self.reported = Instant::now();
        let missing: Vec<NodeId> = self
            .others()
            .filter(|rank| self.peers[rank.index()].is_none())
            .map(|rank| self.rendezvous.plan.members()[rank.index()])
            .collect();
        tracing::info!(group = %self.rendezvous.group, ?missing, "still waiting");
    }

    fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let own = self.rendezvous.own;
        (0..).map(Rank).take(self.peers.len()).filter(move |rank| *rank != own)
    }
}

/// Spreads every bit of a number over all of them (the finaliser of SplitMix64).
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::mix;

    #[test]
    fn the_order_of_incarnations_counts() {
        let run = |incarnations: [u64; 3]| incarnations.iter().fold(7, |run, one| mix(run ^ one));
        assert_ne!(run([1, 2, 3]), run([3, 2, 1]));
        assert_ne!(run([1, 2, 3]), run([1, 2, 4]));
    }
}
