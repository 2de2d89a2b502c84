//! A probe of the throughput of bare TCP between the processes of a group: a mesh of plain
//! connections without the protocol.
//!
//! Each process that sends in the group writes to all others, and each reads from all others, as
//! fast as possible and in large pieces: each direction of a connection has a thread, which waits
//! in the kernel. The bytes themselves are neither written nor read.
//!
//! The connections are the same as in the protocol: established in the same way, with the kernel's
//! own buffer sizes. Bytes are counted during the same period at all processes, which wait at a
//! barrier before it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_control::{Address, Connection, Listener, Mesh, MeshError, MeshOptions};
use tramontane_core::ids::{NodeId, Rank};

use crate::error::BenchError;
use crate::experiment::{Experiment, ExperimentMember, JOIN_LIMIT, Kind};
use tramontane_local::group::{LocalError, LocalPlace};
use tramontane_runtime::group::{FIRST_VIEW, Running, StartError};

/// Number of bytes written and read at once, as in `iperf3`.
const PIECE_BYTES: usize = 128 << 10;

/// Time for which a process runs before it counts, so that the kernel can grow its buffers, and
/// after it has counted, because others may still be counting.
const MARGIN: Duration = Duration::from_millis(300);

/// A mesh of TCP connections without a protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BareMesh {
    /// Duration of the measurement.
    pub(crate) count_ms: u64,
}

/// The measurements of one process of [`BareMesh`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct MeshFigures {
    /// Bytes per second from other processes during the measurement.
    pub(crate) bytes_per_s: f64,
}

impl Experiment for BareMesh {
    const KIND: Kind = Kind::BareMesh;
    type Outcome = MeshFigures;

    fn run(&self, own: &ExperimentMember) -> Result<(MeshFigures, Option<Running>), BenchError> {
        let streams = meet(own)?;
        let sends = own.senders().contains(&own.rank.into());
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
                // This fails if the peer has already closed the connection.
                let _ = stream.shutdown(Shutdown::Both);
            }
            rate
        });
        Ok((MeshFigures { bytes_per_s }, None))
    }
}

/// Establishes the connections to all other processes, and waits until all processes have theirs.
fn meet(own: &ExperimentMember) -> Result<Vec<TcpStream>, BenchError> {
    let LocalPlace::Network { addresses, .. } = &own.place else {
        return Err(BenchError::Setup("the bare mesh runs only over TCP".into()));
    };
    let addresses: Vec<Address> = addresses.iter().copied().map(Address::from).collect();
    let members: Vec<NodeId> = own.group.nodes.iter().map(|node| NodeId(node.id)).collect();
    let listener = own.place.listener().map(Listener::try_from).transpose();
    let connections = connect(MeshOptions {
        own: Rank(own.rank),
        members: &members,
        addresses: &addresses,
        listener: listener.map_err(LocalError::from)?,
        incarnation: None,
        view: FIRST_VIEW,
        digest: 0,
        key: None,
        allow_clear: false,
        time_limit: JOIN_LIMIT,
        cancel: &AtomicBool::new(false),
    });
    let connections = connections.map_err(StartError::from)?;
    Ok(connections.into_iter().flatten().map(|connection| connection.stream).collect())
}

fn connect(options: MeshOptions<'_>) -> Result<Vec<Option<Connection>>, MeshError> {
    let mut mesh = Mesh::join(options)?;
    mesh.barrier()?;
    Ok(mesh.into_connections())
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
