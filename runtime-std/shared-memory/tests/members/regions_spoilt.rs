//! Shows that the clauses about regions can fail: each planted bug in the fabric must be found by
//! the clause intended for it.

use std::collections::VecDeque;
use std::time::Duration;

use tramontane_contract::{
    Breach, PROCESSES, Process, RegionBench, RegionTestbed, Turns, Verdict, interleave,
    region_clauses, run_regions_chosen,
};
use tramontane_core::fabric::{
    Area, Capabilities, ErrorKind, Event, Fabric, HostFabric, HostRegions, Kind, PermissionEvent,
    Permissions, Region, Token, ViewMemory, ViewPlan, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_shared_memory::{Error, Mappings, SharedMemory, SharedRegionMemory};

use crate::regions::{Processes, SharedRegions};

/// The planted bug in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionBug {
    None,
    FewViews,
    RightAtFirst,
    RightOfAllViews,
    LandsElsewhere,
    OneRegionOnly,
    RestoredUntold,
    GrantToggles,
    RevokesLate,
    RevokesAllRegions,
    DeniedUntold,
    DeniedLosesPeer,
    CompletesAtOnce,
    CompletesTwice,
    NobodyRings,
    GuardFirst,
    ReadsShort,
    ReadsOutside,
    WritesOutside,
    GrantsNothing,
    MadeAgain,
    LossUntold,
    CutLeavesRight,
    LaterViewsElsewhere,
    LosesLists,
    GuardLate,
    PostsAgain,
    QueueFullUntold,
    ListsSwapped,
    LastCellFirst,
    ReadsElsewhere,
    RightsNeverEnd,
}

use RegionBug as F;

/// Each bug, and the clause that must find it.
const TABLE: [(RegionBug, &str); 35] = [
    (F::FewViews, "views-at-once"),
    (F::FewViews, "views-come-and-go"),
    (F::RightAtFirst, "right-none-at-first"),
    (F::RightAtFirst, "right-ends-with-view"),
    (F::RightOfAllViews, "right-of-one"),
    (F::LandsElsewhere, "right-lets-land"),
    (F::OneRegionOnly, "right-any-source"),
    (F::RestoredUntold, "right-told"),
    (F::GrantToggles, "right-twice"),
    (F::RevokesLate, "revoke-is-final"),
    (F::RevokesLate, "revoke-is-final-in-a-race"),
    (F::RevokesAllRegions, "denied-harms-one-region"),
    (F::DeniedUntold, "denied-is-told"),
    (F::DeniedLosesPeer, "denied-harms-one-region"),
    (F::CompletesAtOnce, "region-completion-visible"),
    (F::CompletesTwice, "region-completed-once"),
    (F::NobodyRings, "region-post-rings"),
    (F::GuardFirst, "region-guard-after-content"),
    (F::ReadsShort, "read-brings-all"),
    (F::ReadsOutside, "read-refused"),
    (F::WritesOutside, "region-range-outside"),
    (F::GrantsNothing, "right-of-nothing"),
    (F::MadeAgain, "region-made-once"),
    (F::LossUntold, "owner-dies"),
    (F::CutLeavesRight, "right-ends-with-cut"),
    (F::LaterViewsElsewhere, "region-shown-by-all"),
    (F::LosesLists, "denied-leave-no-gap"),
    (F::RightsNeverEnd, "writer-dies"),
    (F::GuardLate, "region-guard-as-posted"),
    (F::PostsAgain, "region-content-until-completed"),
    (F::QueueFullUntold, "region-queue-full"),
    (F::ListsSwapped, "region-order-between-lists"),
    (F::LastCellFirst, "region-address-order"),
    (F::ReadsElsewhere, "read-while-written"),
    (F::WritesOutside, "region-list-too-long"),
];

const REGIONS: [Region; 2] = [Region(1), Region(2)];

/// Polls until a late revocation takes effect.
const LATE_POLLS: u32 = 40;

/// Number of passes between a list's completion and its second post.
const PASSES_UNTIL_AGAIN: u32 = 3;

struct Spoilt {
    inner: SharedMemory,
    fault: RegionBug,
    views: Vec<(ViewId, Rank)>,
    made: Vec<SharedRegionMemory>,
    events: VecDeque<Event>,
    late: Vec<(ViewId, Rank, Region)>,
    granted: Vec<(ViewId, Rank, Region)>,
    deferred: Vec<(ViewId, Rank, Write)>,
    /// Lists posted with a token that have not been completed.
    posted: Vec<(Token, ViewId, Rank, Vec<Write>)>,
    /// Completed writes that are posted a second time.
    again: Vec<(ViewId, Rank, Write)>,
    lists: u32,
    polls: u32,
}

impl Spoilt {
    fn is(&self, fault: RegionBug) -> bool {
        self.fault == fault
    }

    fn revoke_late(&mut self) {
        self.polls += 1;
        if self.polls >= LATE_POLLS {
            self.polls = 0;
            for (view, peer, region) in std::mem::take(&mut self.late) {
                let _ = self.inner.revoke(view, peer, region);
            }
        }
    }
}

impl Spoilt {
    fn post_deferred(&mut self) {
        for (view, to, write) in std::mem::take(&mut self.deferred) {
            let _ = self.inner.post(view, to, &[write], None);
        }
    }
}

impl Fabric for Spoilt {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        if self.is(F::FewViews) && self.views.len() >= 4 {
            return Err(ErrorKind::Other);
        }
        self.inner.open(view, memory)?;
        let peer = Rank(1 - memory.own.get());
        self.views.push((view, peer));
        if self.is(F::RightAtFirst) {
            REGIONS.iter().try_for_each(|region| self.inner.grant(view, peer, *region))?;
        }
        Ok(())
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.inner.ready(view, peer)
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        if !self.is(F::CutLeavesRight) {
            self.inner.cut(view, peer);
        }
    }

    fn retire(&mut self, view: ViewId) -> bool {
        self.views.retain(|(of, _)| *of != view);
        self.inner.retire(view)
    }

    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let is_to_region = writes.first().is_some_and(|write| write.target.region != Region::ROW);
        if !is_to_region {
            return self.inner.post(view, to, writes, token);
        }
        let mut list = writes.to_vec();
        let is_foreign = |write: &Write| {
            write.source.region != Region::ROW && write.source.region != write.target.region
        };
        match self.fault {
            F::LandsElsewhere => list[0].target.offset ^= 8,
            F::GuardFirst if list.len() > 1 => {
                self.deferred.push((view, to, list.remove(0)));
            }
            F::LaterViewsElsewhere
                if self.views.first().is_some_and(|(first, _)| *first != view) =>
            {
                return Ok(());
            }
            F::LosesLists => {
                self.lists += 1;
                if self.lists % 5 == 3 {
                    return Ok(());
                }
            }
            F::GuardLate if list.last().is_some_and(|write| write.kind == Kind::Guard) => {
                let guard = list.pop().expect("there is one");
                self.deferred.push((view, to, guard));
            }
            F::PostsAgain => {
                self.posted.extend(token.map(|token| (token, view, to, list.clone())));
            }
            F::ListsSwapped if list.iter().all(|write| write.kind == Kind::Content) => {
                self.deferred.extend(list.drain(..).map(|write| (view, to, write)));
            }
            F::LastCellFirst => {
                for write in &mut list {
                    if write.length > 8 {
                        self.deferred.push((view, to, *write));
                        let ahead = write.length - 8;
                        write.source.offset += ahead;
                        write.target.offset += ahead;
                        write.length = 8;
                    }
                }
            }
            F::OneRegionOnly if writes.iter().any(is_foreign) => return Err(ErrorKind::OutOfRange),
            F::CompletesAtOnce => {
                self.inner.post(view, to, &list, None)?;
                self.events.extend(token.map(Event::Completed));
                return Ok(());
            }
            _ => {}
        }
        match self.inner.post(view, to, &list, token) {
            Err(ErrorKind::OutOfRange) if self.is(F::WritesOutside) => Ok(()),
            Err(ErrorKind::QueueFull) if self.is(F::QueueFullUntold) => Ok(()),
            posted => posted,
        }
    }

    fn poll(&mut self) -> Option<Event> {
        self.revoke_late();
        self.post_deferred();
        let event = self.events.pop_front().or_else(|| self.inner.poll())?;
        match event {
            Event::Completed(Token(token)) if self.is(F::CompletesTwice) && token % 7 == 3 => {
                // Repeated only once.
                self.fault = F::None;
                self.events.push_back(event);
            }
            Event::PeerLost { .. } if self.is(F::LossUntold) => return self.poll(),
            Event::Completed(token) if self.is(F::PostsAgain) => {
                if let Some(at) = self.posted.iter().position(|(other, ..)| *other == token) {
                    let (_, view, to, list) = self.posted.remove(at);
                    self.again.extend(list.into_iter().map(|write| (view, to, write)));
                    self.lists = 0;
                }
            }
            _ => {}
        }
        Some(event)
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        self.inner.wake(view, to);
    }

    fn arm(&mut self) -> bool {
        self.inner.arm()
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn observe_barrier(&self) {}
}

impl HostFabric for Spoilt {
    type Bell = <SharedMemory as HostFabric>::Bell;
    type Rows = Mappings;
    type MemoryError = Error;

    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Mappings, Error> {
        self.inner.rows(plan)
    }

    fn local_bell(&self) -> Self::Bell {
        self.inner.local_bell()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        !self.is(F::NobodyRings) && self.inner.sleep(timeout)
    }

    fn check_peers(&mut self) -> bool {
        self.post_deferred();
        self.lists += 1;
        if self.lists == PASSES_UNTIL_AGAIN {
            self.deferred.append(&mut self.again);
        }
        self.inner.check_peers()
    }

    fn leave(&mut self) {
        self.inner.leave();
    }
}

impl Permissions for Spoilt {
    fn region_list_bytes_max(&self) -> usize {
        self.inner.region_list_bytes_max()
    }

    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        self.late.retain(|late| *late != (view, peer, region));
        self.granted.push((view, peer, region));
        match self.fault {
            F::GrantToggles if self.inner.may_write(view, peer, region) => {
                self.inner.revoke(view, peer, region)
            }
            F::RightOfAllViews => {
                let all = self.views.clone();
                all.iter().try_for_each(|(view, peer)| self.inner.grant(*view, *peer, region))
            }
            F::GrantsNothing => self.inner.grant(view, peer, region).or(Ok(())),
            _ => self.inner.grant(view, peer, region),
        }
    }

    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), ErrorKind> {
        match self.fault {
            F::RevokesLate => {
                self.late.push((view, peer, region));
                Ok(())
            }
            F::RevokesAllRegions => {
                REGIONS.iter().try_for_each(|region| self.inner.revoke(view, peer, *region))
            }
            _ => self.inner.revoke(view, peer, region),
        }
    }

    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool {
        let may = self.inner.may_write(view, peer, region);
        let was_granted =
            self.is(F::RightsNeverEnd) && self.granted.contains(&(view, peer, region));
        was_granted || may && !self.late.contains(&(view, peer, region))
    }

    fn read(
        &mut self,
        view: ViewId,
        from: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let shift = if self.is(F::ReadsElsewhere) && source.offset >= 8 { 8 } else { 0 };
        let source = Area { offset: source.offset - shift, ..source };
        let length = if self.is(F::ReadsShort) { length - length.min(8) } else { length };
        match self.inner.read(view, from, source, into, length, token) {
            Err(ErrorKind::OutOfRange) if self.is(F::ReadsOutside) => Ok(()),
            read => read,
        }
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        let event = self.inner.poll_permission()?;
        match event {
            PermissionEvent::Denied { .. } if self.is(F::DeniedUntold) => None,
            PermissionEvent::Restored { .. } if self.is(F::RestoredUntold) => None,
            PermissionEvent::Denied { view, peer, .. } if self.is(F::DeniedLosesPeer) => {
                let cause = tramontane_core::fabric::LossCause::Denied;
                self.events.push_back(Event::PeerLost { view, peer, cause });
                Some(event)
            }
            event => Some(event),
        }
    }
}

impl HostRegions for Spoilt {
    type RegionMemory = SharedRegionMemory;

    fn region(&mut self, region: Region, bytes: usize) -> Result<SharedRegionMemory, Error> {
        let made = match self.inner.region(region, bytes) {
            Err(_) if self.is(F::MadeAgain) => self.made[0].clone(),
            made => made?,
        };
        self.made.push(made.clone());
        Ok(made)
    }

    fn views_max(&self) -> usize {
        self.inner.views_max()
    }
}

struct SpoiltRegions(RegionBug);

struct SpoiltProcesses {
    fabrics: [Option<Spoilt>; PROCESSES],
    kept: Processes,
}

impl RegionTestbed for SpoiltRegions {
    type Bench<'b> = SpoiltProcesses;

    fn with(&self, scene: impl FnOnce(&mut SpoiltProcesses)) {
        let mut kept = SharedRegions::processes();
        let spoil = |inner| Spoilt {
            inner,
            fault: self.0,
            views: Vec::new(),
            made: Vec::new(),
            events: VecDeque::new(),
            late: Vec::new(),
            granted: Vec::new(),
            deferred: Vec::new(),
            posted: Vec::new(),
            again: Vec::new(),
            lists: 0,
            polls: 0,
        };
        let fabrics = kept.take_fabrics().map(|inner| inner.map(spoil));
        scene(&mut SpoiltProcesses { fabrics, kept });
    }
}

impl RegionBench for SpoiltProcesses {
    type Fabric = Spoilt;

    fn nodes(&self) -> [NodeId; PROCESSES] {
        self.kept.nodes()
    }

    fn fabric(&mut self, process: Process) -> &mut Spoilt {
        self.fabrics[process.0].as_mut().expect("nobody uses who was lost")
    }

    fn pass(&mut self) {
        for fabric in self.fabrics.iter_mut().flatten() {
            fabric.check_peers();
        }
    }

    fn passes_to_settle(&self) -> u32 {
        8
    }

    fn lose(&mut self, process: Process) -> Result<(), &'static str> {
        self.fabrics[process.0] = None;
        Ok(())
    }

    fn rounds(&self) -> u64 {
        40
    }

    fn patience_passes(&self) -> u32 {
        3000
    }

    fn views_tried(&self) -> usize {
        12
    }

    fn race(&mut self, actors: [(Process, Turns<'_, Spoilt>); 2]) -> Result<(), Breach> {
        interleave(self, actors)
    }
}

#[test]
fn each_planted_bug_breaks_its_clause() {
    let mut missed = Vec::new();
    for (fault, id) in TABLE {
        let report = run_regions_chosen(&SpoiltRegions(fault), |clause| clause == id);
        let verdict = report.verdict(id).unwrap_or_else(|| panic!("there is no clause {id}"));
        println!("{fault:?}: {id}: {verdict}");
        if !matches!(verdict, Verdict::Broken(_)) {
            missed.push(format!("{fault:?} is not found by {id}: {verdict}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn each_clause_has_a_planted_bug() {
    let clauses = region_clauses::<SpoiltProcesses>();
    let lack = |id: &&str| !TABLE.iter().any(|(_, found)| found == id);
    let lacking: Vec<&str> = clauses.iter().map(|clause| clause.id).filter(lack).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

#[test]
fn wrapper_without_bug_satisfies_the_contract() {
    assert!(region_clauses::<SpoiltProcesses>().len() >= 34);
    run_regions_chosen(&SpoiltRegions(RegionBug::None), |_| true).assert_kept();
}
