//! A probe of what bare TCP carries between the processes of a group: a mesh of plain connections,
//! with nothing of the protocol on them.
//!
//! Each process that sends in the group writes to all others, and each reads from all others, as
//! much as goes and in large pieces: a thread for each connection and direction, which waits in the
//! kernel. The bytes themselves are neither written nor read.
//!
//! The connections are those of the protocol: met in the same way, with the kernel's own buffer
//! sizes. What comes is counted over one time at all processes, which stand at a barrier before it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_control::{Address, Listener, Mesh, MeshOptions};
use tramontane_core::ids::{NodeId, Rank};

use crate::error::BenchError;
use crate::experiment::{Experiment, JOIN_LIMIT, Kind, Member};
use tramontane_runtime::join::{JoinError, Meeting, NetworkMeeting};
use tramontane_runtime::member::FIXED_VIEW;
use tramontane_runtime::tcp::TcpError;

/// What is written and read at once: as much as `iperf3` does.
const PIECE_BYTES: usize = 128 << 10;

/// How long a process goes on before it counts, until the kernel has grown its buffers, and after
/// it has counted, for the sake of the others.
const MARGIN: Duration = Duration::from_millis(300);

/// A mesh of TCP connections without a protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BareMesh {
    /// How long it counts.
    pub(crate) count_ms: u64,
}

/// What one process of [`BareMesh`] saw.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Received {
    /// From other processes, while it counted.
    pub(crate) bytes_per_s: f64,
}

impl Experiment for BareMesh {
    const KIND: Kind = Kind::BareMesh;
    type Outcome = Received;

    fn run(&self, member: &Member) -> Result<Received, BenchError> {
        let streams = meet(member)?;
        let sends = member.group.subgroups[0].senders.contains(&member.rank()?.0);
        let received = AtomicU64::new(0);
        let bytes_per_s = std::thread::scope(|scope| {
            for stream in &streams {
                if sends {
                    scope.spawn(|| write(stream));
                }
                scope.spawn(|| read(stream, &received));
            }
            std::thread::sleep(MARGIN);
            let (start, before) = (Instant::now(), received.load(Ordering::Relaxed));
            std::thread::sleep(Duration::from_millis(self.count_ms));
            let bytes = received.load(Ordering::Relaxed) - before;
            let rate = bytes as f64 / start.elapsed().as_secs_f64();
            std::thread::sleep(MARGIN);
            for stream in &streams {
                // It fails if the other end was faster.
                let _ = stream.shutdown(Shutdown::Both);
            }
            rate
        });
        Ok(Received { bytes_per_s })
    }
}

/// Connections to all other processes, once all have them.
fn meet(member: &Member) -> Result<Vec<TcpStream>, BenchError> {
    let no_place = || BenchError::Setup("a bare mesh is one of TCP connections".into());
    let Meeting::Tcp(meeting) = member.place.meeting()? else { return Err(no_place()) };
    let own = member.rank()?;
    let members: Vec<NodeId> = member.group.members.iter().copied().map(NodeId).collect();
    Ok(connect(own, &members, &meeting).map_err(JoinError::from)?)
}

fn connect(
    own: Rank,
    members: &[NodeId],
    meeting: &NetworkMeeting,
) -> Result<Vec<TcpStream>, TcpError> {
    let addresses: Vec<Address> = meeting.addresses.iter().copied().map(Address::from).collect();
    let cancel = AtomicBool::new(false);
    let mut mesh = Mesh::join(MeshOptions {
        own,
        members,
        addresses: &addresses,
        listener: meeting.listener()?.map(Listener::try_from).transpose()?,
        incarnation: None,
        view: FIXED_VIEW,
        digest: 0,
        key: None,
        allow_clear: false,
        time_limit: JOIN_LIMIT,
        cancel: &cancel,
    })?;
    mesh.barrier()?;
    Ok(mesh.into_connections().into_iter().flatten().map(|connection| connection.stream).collect())
}

/// Writes until the connection ends.
fn write(mut stream: &TcpStream) {
    let from = vec![7; PIECE_BYTES];
    while stream.write_all(&from).is_ok() {}
}

/// Reads until the connection ends.
fn read(mut stream: &TcpStream, received: &AtomicU64) {
    let mut into = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = stream.read(&mut into) {
        received.fetch_add(count as u64, Ordering::Relaxed);
    }
}
