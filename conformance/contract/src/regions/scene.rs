//! Helpers of the clauses about regions: processes with their regions, views between two of them,
//! and the usual steps.

use std::collections::BTreeMap;

use tramontane_core::fabric::{
    Area, Capabilities, ErrorKind, Event, Fabric, FabricError, HostFabric, HostRegions, Kind,
    PermissionEvent, Permissions, Region, RegionMemory, Token, ViewPlan, ViewRows, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::testbed::{PROCESSES, Process, RegionBench};
use crate::report::{Breach, ensure};

/// The processes of every bench.
pub(super) const A: Process = Process(0);
pub(super) const B: Process = Process(1);
pub(super) const C: Process = Process(2);
pub(super) const ALL: [Process; PROCESSES] = [A, B, C];

/// The regions that every process has.
pub(super) const LOG: Region = Region(1);
pub(super) const OTHER: Region = Region(2);

/// Length in bytes of each process's regions. Each process chooses its own.
pub(super) const LOG_BYTES: [usize; PROCESSES] = [65_536, 32_768, 49_152];
pub(super) const OTHER_BYTES: usize = 8192;

/// Length of every row in bytes.
pub(super) const ROW_BYTES: usize = 4096;

/// The memory of a fabric's regions and rows.
pub(super) type SceneMemory<T> = <<T as RegionBench>::Fabric as HostRegions>::RegionMemory;
type RowsOf<T> = <<T as RegionBench>::Fabric as HostFabric>::Rows;

/// A view of two processes, in rank order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairView {
    pub(super) view: ViewId,
    pub(super) members: [Process; 2],
}

impl PairView {
    /// Returns the rank of the other process.
    pub(super) fn peer_of(&self, process: Process) -> Rank {
        Rank(u16::from(self.members[0] == process))
    }

    fn rank_of(&self, process: Process) -> Rank {
        Rank(u16::from(self.members[1] == process))
    }
}

/// A process with its memory and its events.
struct SceneMember<T: RegionBench> {
    regions: [SceneMemory<T>; 2],
    rows: BTreeMap<ViewId, RowsOf<T>>,
    events: Vec<Event>,
    told: Vec<PermissionEvent>,
}

/// The processes of a bench, and their views.
pub(super) struct Scene<'b, T: RegionBench> {
    pub(super) bench: &'b mut T,
    /// `None` for a process that was lost.
    places: [Option<SceneMember<T>>; PROCESSES],
    views: u64,
    capabilities: Capabilities,
}

impl<'b, T: RegionBench> Scene<'b, T> {
    /// Creates the processes, each with its regions.
    pub(super) fn new(bench: &'b mut T) -> Result<Self, Breach> {
        let mut places = [const { None }; PROCESSES];
        for (process, place) in ALL.into_iter().zip(&mut places) {
            let mut make = |region, bytes| {
                bench.fabric(process).region(region, bytes).map_err(|error| {
                    Breach(format!("{process} cannot create {region:?} of {bytes} bytes: {error}"))
                })
            };
            let regions = [make(LOG, LOG_BYTES[process.0])?, make(OTHER, OTHER_BYTES)?];
            let (rows, events, told) = Default::default();
            *place = Some(SceneMember { regions, rows, events, told });
        }
        let capabilities = bench.fabric(A).capabilities();
        Ok(Self { bench, places, views: 0, capabilities })
    }

    fn place(&self, process: Process) -> &SceneMember<T> {
        self.places[process.0].as_ref().expect("a clause uses nobody who was lost")
    }

    fn place_mut(&mut self, process: Process) -> &mut SceneMember<T> {
        self.places[process.0].as_mut().expect("a clause uses nobody who was lost")
    }

    pub(super) fn fabric(&mut self, process: Process) -> &mut T::Fabric {
        self.bench.fabric(process)
    }

    pub(super) const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Returns a new view, whose id is neither above nor below all others.
    pub(super) fn fresh_link(&mut self, members: [Process; 2]) -> PairView {
        self.views += 1;
        PairView { view: ViewId(self.views.wrapping_mul(0x9e37_79b1) % (1 << 32)), members }
    }

    /// Opens a view at one of its two members.
    pub(super) fn open(&mut self, process: Process, link: PairView) -> Result<(), Breach> {
        let nodes = self.bench.nodes();
        let members: [NodeId; 2] = link.members.map(|member| nodes[member.0]);
        let (own, sizes) = (link.rank_of(process), [ROW_BYTES; 2]);
        let plan = ViewPlan::with_sizes(link.view, own, &members, &sizes, link.view.0 ^ 0x5eed);
        let rows = self.fabric(process).rows(&plan).map_err(|error| {
            Breach(format!("{process} cannot create the rows of {}: {error}", link.view))
        })?;
        let opened = self.fabric(process).open(link.view, &rows.memory());
        opened.map_err(|error| {
            Breach(format!("{process} cannot open {}: {}", link.view, error.kind()))
        })?;
        self.place_mut(process).rows.insert(link.view, rows);
        Ok(())
    }

    /// Waits until both members of a view are ready.
    pub(super) fn await_ready(&mut self, link: PairView) -> Result<(), Breach> {
        let is_ready = self.wait(|scene| {
            let ready = |process: Process| {
                scene.bench.fabric(process).ready(link.view, link.peer_of(process))
            };
            Ok(link.members.map(ready) == [true; 2])
        })?;
        ensure!(is_ready, "both members opened {}, but one is never ready", link.view);
        Ok(())
    }

    /// Opens a view of two processes, and waits until both are ready.
    pub(super) fn link(&mut self, members: [Process; 2]) -> Result<PairView, Breach> {
        let link = self.fresh_link(members);
        members.into_iter().try_for_each(|member| self.open(member, link))?;
        self.await_ready(link)?;
        Ok(link)
    }

    /// Retires a view at a process, and drops its rows.
    pub(super) fn retire(&mut self, process: Process, link: PairView) -> Result<(), Breach> {
        let ended = self.wait(|scene| Ok(scene.fabric(process).retire(link.view)))?;
        ensure!(ended, "retiring {} at {process} never completes", link.view);
        self.place_mut(process).rows.remove(&link.view);
        Ok(())
    }

    /// Polls a process until it has nothing to report.
    pub(super) fn step(&mut self, process: Process) -> Result<(), Breach> {
        let Self { bench, places, .. } = self;
        let Some(place) = &mut places[process.0] else { return Ok(()) };
        let fabric = bench.fabric(process);
        let mut polls = 0;
        while let Some(event) = fabric.poll() {
            place.events.push(event);
            polls += 1;
            ensure!(polls < 100_000, "polling {process} never ends: {event:?}");
        }
        while let Some(event) = fabric.poll_permission() {
            place.told.push(event);
            polls += 1;
            ensure!(
                polls < 200_000,
                "polling {process} for permission events never ends: {event:?}"
            );
        }
        Ok(())
    }

    /// Lets a little time pass while these processes poll.
    pub(super) fn pass(&mut self, steppers: &[Process]) -> Result<(), Breach> {
        self.bench.pass();
        steppers.iter().try_for_each(|process| self.step(*process))
    }

    /// Waits until all writes in flight have landed, while all processes poll.
    pub(super) fn settle(&mut self) -> Result<(), Breach> {
        self.settle_with(&ALL)
    }

    /// Waits until all writes in flight have landed, while only these processes poll.
    pub(super) fn settle_with(&mut self, steppers: &[Process]) -> Result<(), Breach> {
        let (passes, mut quiet) = (self.bench.passes_to_settle(), 0);
        // A lost process may leave something in flight that never completes.
        for _ in 0..passes.saturating_mul(50) {
            self.pass(steppers)?;
            let is_quiet = steppers.iter().all(|process| self.bench.is_quiet(*process));
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if quiet == passes {
                break;
            }
        }
        Ok(())
    }

    /// Waits for a condition while all processes poll. Returns false if it never holds.
    pub(super) fn wait(
        &mut self,
        mut done: impl FnMut(&mut Self) -> Result<bool, Breach>,
    ) -> Result<bool, Breach> {
        for _ in 0..self.bench.patience_passes() {
            if done(self)? {
                return Ok(true);
            }
            self.pass(&ALL)?;
        }
        Ok(false)
    }

    pub(super) fn post(
        &mut self,
        from: Process,
        link: PairView,
        writes: &[Write],
        token: Option<u64>,
    ) -> Result<(), ErrorKind> {
        let posted =
            self.fabric(from).post(link.view, link.peer_of(from), writes, token.map(Token));
        posted.map_err(|error| error.kind())
    }

    /// Posts writes that must succeed eventually, because the permission exists.
    pub(super) fn post_through(
        &mut self,
        from: Process,
        link: PairView,
        writes: &[Write],
        token: Option<u64>,
    ) -> Result<(), Breach> {
        let mut last = Ok(());
        let passed = self.wait(|scene| {
            last = scene.post(from, link, writes, token);
            match last {
                Ok(()) => Ok(true),
                // The writer's fabric may not know of the permission yet.
                Err(ErrorKind::QueueFull | ErrorKind::Revoked) => Ok(false),
                Err(kind) => {
                    Err(Breach(format!("a post by {from} in {} was refused: {kind}", link.view)))
                }
            }
        })?;
        ensure!(
            passed,
            "{from} has permission in {}, but a post still returns {last:?}",
            link.view
        );
        Ok(())
    }

    /// Posts writes that must succeed eventually, while only the writer polls.
    pub(super) fn post_through_alone(
        &mut self,
        from: Process,
        link: PairView,
        writes: &[Write],
    ) -> Result<(), Breach> {
        let mut last = Err(ErrorKind::QueueFull);
        for _ in 0..self.bench.patience_passes() {
            last = self.post(from, link, writes, None);
            if last != Err(ErrorKind::QueueFull) {
                break;
            }
            self.pass(&[from])?;
        }
        last.map_err(|kind| {
            Breach(format!("a post by {from} in {} was refused: {kind}", link.view))
        })
    }

    /// Grants the other member of a view the permission to write to the owner's region.
    pub(super) fn grant(
        &mut self,
        owner: Process,
        link: PairView,
        region: Region,
    ) -> Result<(), Breach> {
        let granted = self.fabric(owner).grant(link.view, link.peer_of(owner), region);
        granted.map_err(|error| {
            Breach(format!("{owner} cannot grant {region:?} in {}: {}", link.view, error.kind()))
        })?;
        ensure!(self.may_write(owner, link, region), "a granted permission does not show");
        Ok(())
    }

    /// Revokes the other member's permission to write to the owner's region.
    pub(super) fn revoke(
        &mut self,
        owner: Process,
        link: PairView,
        region: Region,
    ) -> Result<(), Breach> {
        let revoked = self.fabric(owner).revoke(link.view, link.peer_of(owner), region);
        revoked.map_err(|error| {
            Breach(format!("{owner} cannot revoke {region:?} in {}: {}", link.view, error.kind()))
        })?;
        ensure!(!self.may_write(owner, link, region), "a revoked permission still shows");
        Ok(())
    }

    /// Returns whether the other member of a view may write to the owner's region.
    pub(super) fn may_write(&mut self, owner: Process, link: PairView, region: Region) -> bool {
        self.fabric(owner).may_write(link.view, link.peer_of(owner), region)
    }

    /// Returns the memory of a process's own region.
    pub(super) fn memory(&self, process: Process, region: Region) -> &SceneMemory<T> {
        &self.place(process).regions[usize::from(region == OTHER)]
    }

    /// Returns the current bytes of a range of a process's own region.
    pub(super) fn look(
        &self,
        process: Process,
        region: Region,
        offset: usize,
        length: usize,
    ) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let read = self.memory(process, region).writer().reader().read(offset, &mut bytes);
        debug_assert!(read.is_ok(), "a clause looks outside a region");
        bytes
    }

    /// Returns the current contents of a process's own region.
    pub(super) fn snapshot(&self, process: Process, region: Region) -> Vec<u8> {
        self.look(process, region, 0, self.memory(process, region).writer().bytes())
    }

    /// Stores bytes in a process's own region.
    pub(super) fn fill(&self, process: Process, region: Region, offset: usize, bytes: &[u8]) {
        let stored = self.memory(process, region).writer().apply(offset, bytes);
        debug_assert!(stored.is_ok(), "a clause stores outside a region");
    }

    /// Stores bytes in a process's own row of a view.
    pub(super) fn fill_row(&self, process: Process, link: PairView, offset: usize, bytes: &[u8]) {
        let stored = self.place(process).rows[&link.view].row().apply(offset, bytes);
        debug_assert!(stored.is_ok(), "a clause stores outside a row");
    }

    /// Returns bytes of the peer's row that a process sees in a view.
    pub(super) fn look_row(
        &self,
        holder: Process,
        link: PairView,
        offset: usize,
        length: usize,
    ) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let rows = &self.place(holder).rows[&link.view];
        let read = rows.rows()[link.peer_of(holder).index()].read(offset, &mut bytes);
        debug_assert!(read.is_ok(), "a clause looks outside a row");
        bytes
    }

    /// Takes the events of a process since the last call.
    pub(super) fn take_events(&mut self, process: Process) -> Vec<Event> {
        std::mem::take(&mut self.place_mut(process).events)
    }

    /// Takes the permission events of a process since the last call.
    pub(super) fn take_told(&mut self, process: Process) -> Vec<PermissionEvent> {
        std::mem::take(&mut self.place_mut(process).told)
    }

    /// Returns the tokens that have completed at a process since its events were last taken.
    pub(super) fn completed(&self, process: Process) -> Vec<u64> {
        let token = |event: &Event| match event {
            Event::Completed(Token(token)) => Some(*token),
            _ => None,
        };
        self.place(process).events.iter().filter_map(token).collect()
    }

    /// Ends a process and everything that it has. Returns the reason if this cannot be provoked.
    pub(super) fn lose(&mut self, process: Process) -> Option<&'static str> {
        self.places[process.0] = None;
        self.bench.lose(process).err()
    }

    /// Checks that a write to the peer's region lands eventually; each call needs a different
    /// value. A write posted under an earlier permission may be denied once, if the writer has not
    /// yet learnt that the permission was revoked.
    pub(super) fn ensure_lands(
        &mut self,
        (from, to): (Process, Process),
        link: PairView,
        region: Region,
        value: u8,
    ) -> Result<(), Breach> {
        let (view, peer) = (link.view, link.peer_of(from));
        let denied = PermissionEvent::Denied { view, peer, region };
        let denials =
            |scene: &Self| scene.place(from).told.iter().filter(|event| **event == denied).count();
        let has_landed = |scene: &Self| scene.look(to, region, 256, 64) == [value; 64];
        self.fill(from, region, 256, &[value; 64]);
        for _ in 0..2 {
            let before = denials(self);
            self.post_through(from, link, &[between(region, 256, 64, Kind::Content)], None)?;
            self.wait(|scene| Ok(has_landed(scene) || denials(scene) > before))?;
            if has_landed(self) {
                return Ok(());
            }
        }
        Err(Breach(format!("a write by {from} to {region:?} of {to} in {view} was lost")))
    }

    /// Checks that a write to a row arrives eventually.
    pub(super) fn ensure_row(
        &mut self,
        (from, to): (Process, Process),
        link: PairView,
        value: u8,
    ) -> Result<(), Breach> {
        self.fill_row(from, link, 64, &[value; 8]);
        self.post_through(from, link, &[Write::of_row(64, 8, Kind::Guard)], None)?;
        let came = self.wait(|scene| Ok(scene.look_row(to, link, 64, 8) == [value; 8]))?;
        ensure!(came, "a write of {from}'s row in {} does not arrive at {to}", link.view);
        Ok(())
    }
}

/// Returns a write between the same offsets of two regions.
pub(super) fn between(region: Region, offset: usize, length: usize, kind: Kind) -> Write {
    let area = Area { region, offset };
    Write { source: area, target: area, length, kind }
}

/// Returns a write from the local row to a region.
pub(super) fn from_row(source: usize, region: Region, target: usize, length: usize) -> Write {
    let source = Area { region: Region::ROW, offset: source };
    Write { source, target: Area { region, offset: target }, length, kind: Kind::Content }
}
