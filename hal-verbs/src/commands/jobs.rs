//! Jobs and their outcomes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tramontane_core::ids::Rank;

use crate::adapter::{CompletionQueue, MemoryRegion};
use crate::fabric::{BlockExchange, NearEnd};
use crate::site::{Builder, JoinError, NewConnection, Prepared, ViewObjects};

/// Work on the objects of a view.
#[derive(Debug)]
pub(crate) enum Job {
    /// Creates the objects that all connections of a view share.
    Start(Arc<Builder>),
    /// Creates the objects for one peer: the registration of the peer's copy, and this end of its
    /// connections.
    Prepare { builder: Arc<Builder>, shared: Arc<ViewObjects>, peer: Rank },
    /// Brings up this end of a peer's connections.
    Connect { peer: Rank, connections: Vec<NewConnection> },
    /// Destroys objects that are no longer used.
    End(Remains),
}

/// The outcome of a job.
#[derive(Debug)]
pub(crate) enum JobOutcome {
    Started(Result<ViewObjects, JoinError>),
    Prepared {
        peer: Rank,
        prepared: Result<Prepared, JoinError>,
    },
    /// This end is up, or the device knows no path to the other end and this end has been
    /// destroyed.
    Connected {
        peer: Rank,
        ends: io::Result<Vec<NearEnd>>,
    },
    Ended,
    /// The job was not started, or not completed, for one peer or for all.
    Abandoned(Option<Rank>),
}

/// The objects left of a peer or of a view. They are dropped in the order of the fields:
/// registrations end when no queue pair uses them.
#[derive(Debug, Default)]
#[allow(dead_code, reason = "kept for its end")]
pub(crate) struct Remains {
    pub(crate) ends: Vec<NearEnd>,
    /// Exchanges of blocks, with the memory that peers could write into.
    pub(crate) exchanges: Vec<BlockExchange>,
    /// Copies of rows.
    pub(crate) copies: Vec<MemoryRegion>,
    pub(crate) completions: Option<CompletionQueue>,
    pub(crate) shared: Option<Arc<ViewObjects>>,
}

impl Job {
    /// Returns the peer that this job is for, if it is for one peer.
    pub(super) const fn peer(&self) -> Option<Rank> {
        match self {
            Self::Prepare { peer, .. } | Self::Connect { peer, .. } => Some(*peer),
            Self::Start(_) | Self::End(_) => None,
        }
    }

    /// Runs the job. Once `is_over` is set, nothing more is created.
    pub(super) fn run(self, is_over: &AtomicBool) -> JobOutcome {
        let peer = self.peer();
        match self {
            Self::End(remains) => {
                drop(remains);
                JobOutcome::Ended
            }
            _ if is_over.load(Ordering::Relaxed) => JobOutcome::Abandoned(peer),
            Self::Start(builder) => JobOutcome::Started(builder.start()),
            Self::Prepare { builder, shared, peer } => {
                JobOutcome::Prepared { peer, prepared: builder.prepare(&shared, peer) }
            }
            Self::Connect { peer, connections } => {
                JobOutcome::Connected { peer, ends: connect(connections, is_over) }
            }
        }
    }
}

/// Brings up all of a peer's connections, or none of them.
fn connect(connections: Vec<NewConnection>, is_over: &AtomicBool) -> io::Result<Vec<NearEnd>> {
    let up = |NewConnection { mut near, far, access, receives }: NewConnection| {
        if is_over.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        near.connect(far, access, receives, 0).map(|()| near)
    };
    connections.into_iter().map(up).collect()
}
