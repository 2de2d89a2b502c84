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

use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewPlan, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::Layout;

use super::error::Error;
use super::fabric::SharedMemory;
use super::folder::Patience;
use super::mappings::Mappings;
use super::member_file::{Identity, MemberFile, State};
use super::residence::Residence;
use super::root::{GroupName, Root, random};
use super::row_plan::RowPlan;
use super::space::group_bytes;

/// The one view of a fixed membership.
const FIXED_VIEW: ViewId = ViewId(1);

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
    planned: ViewPlan<'r>,
    plan: RowPlan,
    own: Rank,
}

impl<'r> Rendezvous<'r> {
    /// For the member of rank `own` in a layout that all members have alike. The view is 1.
    ///
    /// # Errors
    /// [`Error::NotAMember`] if the layout has no such rank.
    pub fn new(
        root: &'r Root,
        group: &'r GroupName,
        layout: &'r Layout<'_>,
        own: Rank,
    ) -> Result<Self, Error> {
        let planned = ViewPlan::of_layout(FIXED_VIEW, own, layout);
        let plan = RowPlan::new(&planned);
        let members = plan.members().len();
        if own.index() >= members {
            return Err(Error::NotAMember { rank: own, members });
        }
        Ok(Self { root, group, planned, plan, own })
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
        let identity = Identity {
            digest: self.plan.digest(),
            node: self.plan.members()[self.own.index()],
            incarnation: random(),
            sleeper_barrier: self.root.fences().sleeper_barrier(),
        };
        let state = State::Forming;
        let own = Residence::enter(self.root, self.group, identity, state, &patience)?;
        let own = Arc::new(own);
        let mappings = own.rows(&self.planned)?;
        let mut waiting = Waiting {
            rendezvous: self,
            own: &own,
            identity,
            peers: vec![None; self.plan.members().len()],
            reported: started,
        };
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
        own.announce(State::Running, waiting.run());
        self.await_rows(&waiting, &mappings, &patience)?;
        Ok(mappings)
    }

    /// Waits until all rows are here.
    fn await_rows(
        &self,
        waiting: &Waiting<'_>,
        mappings: &Mappings,
        patience: &Patience<'_>,
    ) -> Result<(), Error> {
        let mut fabric = SharedMemory::new(mappings);
        let opened = fabric.open(self.planned.view(), &mappings.memory());
        debug_assert!(opened.is_ok(), "its own memory");
        while !waiting.others().all(|rank| fabric.ready(self.planned.view(), rank)) {
            patience.check()?;
            if patience.is_over() {
                let group = self.group.to_string();
                let is_silent = |rank: &Rank| !fabric.ready(self.planned.view(), *rank);
                let silent = waiting.others().filter(is_silent);
                let peers = silent.map(|rank| self.plan.members()[rank.index()]).collect();
                return Err(Error::NotAnswering { group, peers });
            }
            fabric.check_peers();
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// A member that waits for the others.
struct Waiting<'w> {
    rendezvous: &'w Rendezvous<'w>,
    own: &'w Residence,
    identity: Identity,
    /// By rank, who was found alive; none for the own one, and for those that are not there.
    peers: Vec<Option<Identity>>,
    reported: Instant,
}

impl Waiting<'_> {
    /// One look at everybody. True if all agree on the run.
    fn look(&mut self) -> Result<bool, Error> {
        let mut runs = Vec::new();
        for rank in self.others() {
            runs.push(self.look_for(rank)?);
        }
        let run = self.run();
        self.own.announce(State::Forming, run);
        Ok(run != 0 && runs.into_iter().all(|theirs| theirs == run))
    }

    /// Finds a peer, or finds that it went. Gives its run.
    fn look_for(&mut self, rank: Rank) -> Result<u64, Error> {
        let folder = &self.own.folder;
        let failed = |errno| Error::from_errno("cannot look for a member in", folder.path(), errno);
        let id = self.rendezvous.plan.members()[rank.index()];
        self.peers[rank.index()] = None;
        let found = MemberFile::find(folder, id).map_err(failed)?;
        let Some(said) = found.and_then(|file| file.read()) else { return Ok(0) };
        let is_of_group = said.identity.digest == self.identity.digest;
        // One that runs already belongs to an earlier run, whatever its layout; `why_not` finds it
        // again.
        if said.state == State::Forming {
            if !said.is_of_this_format {
                return Err(Error::WrongVersion { peer: id });
            }
            if !is_of_group {
                return Err(Error::WrongDigest { peer: id });
            }
        } else if !said.is_of_this_format || !is_of_group || said.state.is_over() {
            return Ok(0);
        }
        self.peers[rank.index()] = Some(said.identity);
        Ok(said.run)
    }

    /// The run as this member sees it now; zero while somebody is missing.
    fn run(&self) -> u64 {
        let mut run = self.identity.digest;
        for (index, place) in self.peers.iter().enumerate() {
            let incarnation = match place {
                Some(peer) => peer.incarnation,
                None if index == self.rendezvous.own.index() => self.identity.incarnation,
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
            let found = MemberFile::find(&self.own.folder, id).ok().flatten();
            match found.and_then(|file| file.read()) {
                None => missing.push(id),
                Some(said) if said.state == State::Running && (run == 0 || said.run != run) => {
                    ending.push(id);
                }
                Some(said) if said.run != run => silent.push(id),
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
