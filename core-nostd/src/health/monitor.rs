//! Publication of this member's liveness in the header of its row, and observation of the other
//! members.
//!
//! Requirements: HLT-1, HLT-2.

use super::event::{HealthEvent, HealthKind};
use crate::check::Checks;
use crate::fabric::{ErrorKind, Fabric, FabricError, Kind, Write};
use crate::ids::{Rank, Time, ViewId, u16_from_index};
use crate::layout::{HeaderCell, Layout};
use crate::memory::{OutOfRow, Row, RowWriter};
use crate::multicast::Unreadable;

/// Parameters for publishing this member's liveness and watching the other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HealthOptions {
    /// Incarnation of this member; not zero. A member that has lost its memory must use a new one,
    /// such as a boot counter.
    pub incarnation: u64,
    /// Interval between this member's heartbeats.
    pub interval_ns: u64,
    /// Time without a new heartbeat after which a peer counts as silent. If `None`, silence is not
    /// detected.
    pub timeout_ns: Option<u64>,
}

/// Reason why the monitor cannot be opened. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum HealthError {
    /// The layout has no health cells in its headers.
    NoHeader = 1,
    /// The number of rows or of peer states differs from the number of members, or the rank does
    /// not belong to a member.
    WrongState = 2,
    /// The incarnation is zero, or larger than a cell can hold.
    Incarnation = 3,
}

impl core::fmt::Display for HealthError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NoHeader => "the layout has no health cells",
            Self::WrongState => "the rows or the lent state do not match the layout",
            Self::Incarnation => "the incarnation must not be zero, and must fit in its cell",
        })
    }
}

impl core::error::Error for HealthError {}

impl From<OutOfRow> for HealthError {
    fn from(_: OutOfRow) -> Self {
        Self::WrongState
    }
}

/// The monitor's state for one peer. Opening a monitor resets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PeerHealth {
    incarnation: u64,
    heartbeat: u64,
    seen: Time,
    is_silent: bool,
    /// Whether the peer can never again count as the same member.
    is_over: bool,
    unreadable: Unreadable,
    /// Newest version of the local header that has been posted to the peer.
    posted: u64,
}

/// One member's monitor, for a permanent view.
///
/// - *Inputs*: [`Monitor::step`], called before each step of the node;
///   [`Monitor::stop_because_of`].
/// - *Outputs*: the events and posts of a step.
/// - *Getters*: [`Monitor::is_over`].
#[derive(Debug)]
pub struct Monitor<'m> {
    view: ViewId,
    own: Rank,
    rows: &'m [Row<'m>],
    row: RowWriter<'m>,
    peers: &'m mut [PeerHealth],
    options: HealthOptions,
    checks: Checks,
    next_beat: Time,
    heartbeat: u64,
    /// Counts changes of the local header.
    version: u64,
    started: bool,
}

impl<'m> Monitor<'m> {
    /// Opens a monitor on the memory of a node; `peers` must have one entry per member.
    ///
    /// # Errors
    /// See [`HealthError`].
    pub fn open(
        view: ViewId,
        layout: &Layout<'_>,
        own: Rank,
        (rows, row): (&'m [Row<'m>], RowWriter<'m>),
        peers: &'m mut [PeerHealth],
        options: HealthOptions,
    ) -> Result<Self, HealthError> {
        if !layout.has_health() {
            return Err(HealthError::NoHeader);
        }
        let members = layout.members();
        if rows.len() != members || peers.len() != members || own.index() >= members {
            return Err(HealthError::WrongState);
        }
        let checks = layout.checks();
        let fits = checks.unseal(checks.seal(options.incarnation)) == Some(options.incarnation);
        if options.incarnation == 0 || !fits {
            return Err(HealthError::Incarnation);
        }
        // bound: the members
        for peer in peers.iter_mut() {
            *peer = PeerHealth::default();
        }
        let mut monitor = Self {
            view,
            own,
            rows,
            row,
            peers,
            options,
            checks,
            next_beat: Time::ZERO,
            heartbeat: 0,
            version: 0,
            started: false,
        };
        monitor.publish(HeaderCell::Incarnation, options.incarnation)?;
        Ok(monitor)
    }

    /// Publishes a heartbeat if one is due, and reports changes of the other members since the last
    /// step: at most one event per member. The work grows with the number of members.
    pub fn step<F: Fabric>(
        &mut self,
        now: Time,
        fabric: &mut F,
        mut report: impl FnMut(HealthEvent),
    ) {
        if !self.started || now >= self.next_beat {
            self.next_beat = now.after(self.options.interval_ns);
            self.heartbeat = self.heartbeat.saturating_add(1);
            // The cell is inside the row: `open` has published a value there.
            let _ = self.publish(HeaderCell::Heartbeat, self.heartbeat);
        }
        if !self.started {
            self.peers.iter_mut().for_each(|peer| peer.seen = now);
        }
        let count = u16_from_index(self.peers.len()).unwrap_or(u16::MAX);
        // bound: the members
        for rank in (0..count).map(Rank) {
            if rank == self.own {
                continue;
            }
            if let Some(event) = self.watch(rank, now) {
                report(event);
            }
            self.post(rank, fabric);
        }
        self.started = true;
    }

    /// Publishes that this member has stopped because of `peer`; the peer learns of it if it is
    /// alive.
    pub fn stop_because_of(&mut self, peer: Rank) {
        let _ = self.publish(HeaderCell::StoppedBecauseOf, u64::from(peer.0).saturating_add(1));
    }

    /// Returns whether a member can never again count as the same member: it has restarted, it has
    /// stopped, or its header cannot be read.
    #[must_use]
    pub fn is_over(&self, peer: Rank) -> bool {
        self.peers.get(peer.index()).is_some_and(|peer| peer.is_over)
    }

    fn publish(&mut self, cell: HeaderCell, value: u64) -> Result<(), OutOfRow> {
        self.row.cell(cell.offset())?.publish(self.checks.seal(value));
        self.version = self.version.saturating_add(1);
        Ok(())
    }

    /// Returns the values of a header, or `None` if one of its cells fails its check.
    fn header(&self, rank: Rank) -> Option<[u64; 3]> {
        let row = self.rows.get(rank.index())?;
        let read = |cell: HeaderCell| {
            self.checks.unseal(row.cell(cell.offset()).map_or(0, |cell| cell.load()))
        };
        // The heartbeat is read first, because a member publishes its incarnation before any
        // heartbeat.
        let heartbeat = read(HeaderCell::Heartbeat)?;
        let incarnation = read(HeaderCell::Incarnation)?;
        Some([incarnation, heartbeat, read(HeaderCell::StoppedBecauseOf)?])
    }

    fn watch(&mut self, rank: Rank, now: Time) -> Option<HealthEvent> {
        let shown = self.header(rank);
        let (own, timeout) = (self.own, self.options.timeout_ns);
        let peer = self.peers.get_mut(rank.index())?;
        if peer.is_over {
            return None;
        }
        let event = |kind, since, detail| Some(HealthEvent { peer: rank, kind, since, detail });
        if peer.unreadable.count(shown.is_none()).is_err() {
            peer.is_over = true;
            return event(HealthKind::Unreadable, now, peer.incarnation);
        }
        let [incarnation, heartbeat, stopped] =
            shown.unwrap_or([peer.incarnation, peer.heartbeat, 0]);
        if peer.incarnation != 0 && incarnation != peer.incarnation {
            peer.is_over = true;
            return event(HealthKind::Restarted, now, incarnation);
        }
        if stopped == u64::from(own.0).saturating_add(1) {
            peer.is_over = true;
            return event(HealthKind::StoppedBecauseOfThis, now, incarnation);
        }
        if heartbeat != peer.heartbeat {
            let (is_first, was_silent) = (peer.heartbeat == 0, peer.is_silent);
            peer.incarnation = incarnation;
            peer.heartbeat = heartbeat;
            peer.seen = now;
            peer.is_silent = false;
            return match (is_first, was_silent) {
                (true, _) => event(HealthKind::Started, now, incarnation),
                (false, true) => event(HealthKind::Resumed, now, incarnation),
                (false, false) => None,
            };
        }
        let is_overdue = timeout.is_some_and(|timeout| now.since(peer.seen) > timeout);
        if is_overdue && !peer.is_silent {
            peer.is_silent = true;
            return event(HealthKind::Silent, peer.seen, incarnation);
        }
        None
    }

    /// Posts the local header if the peer lacks it. If the queue is full, the next step retries;
    /// other failures are reported by the node's own posts.
    fn post<F: Fabric>(&mut self, rank: Rank, fabric: &mut F) {
        let version = self.version;
        let Some(peer) = self.peers.get_mut(rank.index()) else { return };
        if peer.posted == version || !fabric.ready(self.view, rank) {
            return;
        }
        let header = [Write::of_row(0, HeaderCell::BYTES, Kind::Guard)];
        match fabric.post(self.view, rank, &header, None) {
            Ok(()) => peer.posted = version,
            Err(error) if error.kind() == ErrorKind::QueueFull => {}
            Err(_) => peer.posted = version,
        }
    }
}
