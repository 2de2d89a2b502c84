//! Members over TCP in one process, some of them driven by hand, byte by byte.

#![allow(dead_code, reason = "each test binary uses its part of this")]

pub mod blocks;

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_control::{
    Connection, Mesh, MeshOptions, RECORD_CONTENT_MAX, RECORD_HEADER, RECORD_OVERHEAD, SharedKey,
};
use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric, HostFabric as _, HostRegions as _, Kind, PermissionEvent,
    Permissions as _, Region, RegionMemory as _, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_tcp::{RegionMemory, Rows, Settings, Tcp};

pub const VIEW: ViewId = ViewId(1);
pub const ROW_BYTES: usize = 64 << 10;
pub const MEMBERS: u16 = 3;

/// The region that every member has, and its length.
pub const LOG: Region = Region(1);
pub const LOG_BYTES: usize = 64 << 10;

/// The digest of the layout of all rows here.
pub const DIGEST: u64 = 42;
pub const PATIENCE: Duration = Duration::from_secs(20);

static NEVER: AtomicBool = AtomicBool::new(false);

/// Returns settings with buffers that fill up quickly.
pub fn small() -> Settings {
    Settings { socket_bytes: Some(32 << 10), ..Settings::default() }
}

pub fn key() -> Option<SharedKey> {
    Some(SharedKey::from_bytes([3; 32]))
}

pub fn ids() -> Vec<NodeId> {
    (0..MEMBERS).map(|rank| NodeId(u32::from(rank) + 10)).collect()
}

/// Returns listening sockets and their addresses.
pub fn listeners(count: u16) -> (Vec<TcpListener>, Vec<SocketAddr>) {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let addresses =
        listeners.iter().map(|listener| listener.local_addr().expect("an address")).collect();
    (listeners, addresses)
}

/// Returns the connections of three members that have met, by member and then by peer.
pub fn connections(key: Option<SharedKey>) -> Vec<Vec<Option<Connection>>> {
    let (listeners, addresses) = listeners(MEMBERS);
    meet(listeners, &addresses, key)
}

/// Returns the connections of members that listen at these sockets.
pub fn meet(
    listeners: Vec<TcpListener>,
    addresses: &[SocketAddr],
    key: Option<SharedKey>,
) -> Vec<Vec<Option<Connection>>> {
    std::thread::scope(|scope| {
        let meeting: Vec<_> = (0..MEMBERS)
            .map(Rank)
            .zip(listeners)
            .map(|(own, listener)| {
                let key = key.clone();
                scope.spawn(move || join(own, addresses, listener, key))
            })
            .collect();
        meeting.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Meets the other members, which do the same in other threads. Returns the connections by peer.
pub fn join(
    own: Rank,
    addresses: &[SocketAddr],
    listener: TcpListener,
    key: Option<SharedKey>,
) -> Vec<Option<Connection>> {
    let options = MeshOptions {
        own,
        members: &ids(),
        addresses: &addresses.iter().copied().map(Into::into).collect::<Vec<_>>(),
        listener: Some(listener.try_into().expect("it listens")),
        incarnation: None,
        view: VIEW,
        digest: 42,
        key,
        allow_clear: false,
        time_limit: PATIENCE,
        cancel: &NEVER,
    };
    Mesh::join(options).expect("they meet").into_connections()
}

/// A member with a fabric of the runtime.
pub struct TcpMember {
    pub own: Rank,
    pub fabric: Tcp,
    pub rows: Rows,
    pub log: RegionMemory,
}

impl TcpMember {
    pub fn new(own: Rank, connections: Vec<Option<Connection>>, settings: Settings) -> Self {
        let mut fabric = Tcp::new(ids()[own.index()], settings).expect("descriptors");
        for (peer, connection) in ids().into_iter().zip(connections) {
            if let Some(connection) = connection {
                fabric.add_peer(peer, connection).expect("a socket");
            }
        }
        let log = fabric.region(LOG, LOG_BYTES).expect("memory");
        let rows = fabric.rows(&plan(own, VIEW, DIGEST, &ids())).expect("memory");
        Self { own, fabric, rows, log }
    }

    /// Opens a view on the member's own rows, and returns them.
    pub fn open(&mut self, view: ViewId) -> Result<Rows, ErrorKind> {
        if view == VIEW {
            self.fabric.open(view, &self.rows.memory())?;
            return Ok(self.rows.clone());
        }
        self.open_as(view, DIGEST)
    }

    /// Opens a view on fresh rows of a layout with this digest, and returns the rows.
    pub fn open_as(&mut self, view: ViewId, digest: u64) -> Result<Rows, ErrorKind> {
        self.open_with(view, digest, &ids())
    }

    /// Opens a view without the last of the members.
    pub fn open_without_last(&mut self, view: ViewId) -> Result<Rows, ErrorKind> {
        self.open_with(view, DIGEST, &ids()[..ids().len() - 1])
    }

    fn open_with(
        &mut self,
        view: ViewId,
        digest: u64,
        members: &[NodeId],
    ) -> Result<Rows, ErrorKind> {
        let rows = self.fabric.rows(&plan(self.own, view, digest, members)).expect("memory");
        self.fabric.open(view, &rows.memory())?;
        Ok(rows)
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.fabric.poll()).collect()
    }

    /// Returns the pending events about rights.
    pub fn told(&mut self) -> Vec<PermissionEvent> {
        std::iter::from_fn(|| self.fabric.poll_permission()).collect()
    }

    /// Returns the contents of the member's log.
    pub fn logged(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.log.writer().reader().read(offset, &mut bytes).expect("in the region");
        bytes
    }

    /// Polls until a peer is lost, and returns the event.
    pub fn loss(&mut self) -> Event {
        let start = Instant::now();
        loop {
            if let Some(loss) =
                self.events().into_iter().find(|event| matches!(event, Event::PeerLost { .. }))
            {
                return loss;
            }
            assert!(start.elapsed() < PATIENCE, "nobody is lost");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns this member's copy of another's row.
    pub fn copy(&self, of: Rank) -> Vec<u8> {
        let row = self.rows.rows()[of.index()];
        let mut bytes = vec![0; row.bytes()];
        row.read(0, &mut bytes).expect("the whole row");
        bytes
    }

    pub fn cell(&self, of: Rank, offset: usize) -> u64 {
        self.rows.rows()[of.index()].cell(offset).expect("a cell").load()
    }
}

fn plan(own: Rank, view: ViewId, digest: u64, members: &[NodeId]) -> ViewPlan<'_> {
    ViewPlan::with_sizes(view, own, members, &[ROW_BYTES; MEMBERS as usize], digest)
}

/// Returns three members with view 1 open.
pub fn members(key: Option<SharedKey>, settings: Settings) -> Vec<TcpMember> {
    let mut members: Vec<TcpMember> = (0..)
        .map(Rank)
        .zip(connections(key))
        .map(|(own, connections)| TcpMember::new(own, connections, settings))
        .collect();
    for member in &mut members {
        member.open(VIEW).expect("it opens");
    }
    settle(&mut members);
    for member in &mut members {
        assert_eq!(member.events().len(), 2, "both peers are ready");
    }
    members
}

/// Waits until everything in flight has arrived.
pub fn settle(members: &mut [TcpMember]) {
    for _ in 0..50 {
        for member in &mut *members {
            member.fabric.carry();
        }
        std::thread::sleep(Duration::from_micros(400));
    }
}

pub fn guard(offset: usize) -> Write {
    Write::of_row(offset, 8, Kind::Guard)
}

/// Returns a write from the local log to the same offset of the peer's.
pub fn log_write(offset: usize, length: usize) -> Write {
    let area = Area { region: LOG, offset };
    Write { source: area, target: area, length, kind: Kind::Content }
}

/// Asserts that one member can store and post a number, and that the other sees the number.
pub fn assert_way(members: &mut [TcpMember], from: usize, to: usize, value: u64) {
    members[from].rows.row().cell(512).expect("a cell").publish(value);
    let rank = members[to].own;
    members[from].fabric.post(VIEW, rank, &[guard(512)], None).expect("the way is open");
    let start = Instant::now();
    while members[to].cell(Rank(from as u16), 512) != value {
        assert!(start.elapsed() < PATIENCE, "{value} never comes from {from} to {to}");
        members[to].fabric.carry();
    }
}

/// The other end of a member's connection, driven by hand.
pub struct Hand {
    pub connection: Connection,
}

impl Hand {
    /// Sends bytes as the fabric's stream, encrypted if there is a key.
    pub fn send(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(RECORD_CONTENT_MAX) {
            let record = self.seal(part);
            self.connection.stream.write_all(&record).expect("it goes");
        }
    }

    /// Returns bytes as they cross the network.
    pub fn seal(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(cipher) = &mut self.connection.cipher else { return bytes.to_vec() };
        let mut record = vec![0; RECORD_OVERHEAD + bytes.len()];
        record[RECORD_HEADER..RECORD_HEADER + bytes.len()].copy_from_slice(bytes);
        cipher.seal(&mut record).expect("short enough");
        record
    }
}

/// Returns a header, field by field.
pub fn header(kind: u8, region: u16, length: u32, view: u64, last: u64) -> Vec<u8> {
    let mut bytes = vec![kind, 0];
    bytes.extend(region.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(view.to_le_bytes());
    bytes.extend(last.to_le_bytes());
    bytes
}

/// Returns the frame for an open view, in memory of a layout.
pub fn open_frame_of(view: ViewId, digest: u64) -> Vec<u8> {
    open_frame_with(view, digest, ROW_BYTES as u64)
}

/// Does the same as [`open_frame_of`], with a row of this length.
pub fn open_frame_with(view: ViewId, digest: u64, row_bytes: u64) -> Vec<u8> {
    let mut bytes = header(1, 0, 8, view.0, row_bytes);
    bytes.extend(digest.to_le_bytes());
    bytes
}

/// Returns the frame for an open view 1.
pub fn open_frame() -> Vec<u8> {
    open_frame_of(VIEW, DIGEST)
}

/// Returns a write to the row of its sender.
pub fn write_frame(offset: u64, content: &[u8]) -> Vec<u8> {
    write_frame_in(VIEW, offset, content)
}

/// Does the same as [`write_frame`], in another view.
pub fn write_frame_in(view: ViewId, offset: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(2, 0, content.len() as u32, view.0, offset);
    bytes.extend(content);
    bytes
}

/// Returns a member, another correct member, and the hand of a third member: ranks 0, 2 and 1.
pub fn with_hand(key: Option<SharedKey>) -> (Vec<TcpMember>, Hand) {
    let mut all = connections(key);
    let hand = all[1][0].take().expect("a connection from 1 to 0");
    // The connection between 1 and 2 stays open, and silent.
    std::mem::forget(all[1][2].take());
    let last = TcpMember::new(Rank(2), all.pop().expect("three"), Settings::default());
    let first = TcpMember::new(Rank(0), all.swap_remove(0), Settings::default());
    let mut members = vec![first, last];
    for member in &mut members {
        member.open(VIEW).expect("it opens");
    }
    settle(&mut members);
    assert!(members[0].fabric.ready(VIEW, Rank(2)) && !members[0].fabric.ready(VIEW, Rank(1)));
    (members, Hand { connection: hand })
}
