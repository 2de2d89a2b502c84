//! Processes that come and go one by one while others work. They form views of two, like the
//! clients of a process or a restarted process.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tramontane_control::Connection;
use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric as _, HostFabric as _, HostRegions as _, Kind, Permissions as _,
    Region, RegionMemory as _, Token, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_tcp::{Settings, Tcp};
use tramontane_verbs::{Limits, RdmaViews, RegionMemory, Rows, Site};

use super::VerbsViews;
use super::group::device;

const LOG: Region = Region(1);
const SERVER: NodeId = NodeId(1);

/// The ranks of a server and of its client, in their common view.
const S: Rank = Rank(0);
const C: Rank = Rank(1);

const PATIENCE: Duration = Duration::from_secs(30);

struct VerbsProcess {
    fabric: VerbsViews,
    log: RegionMemory,
}

impl VerbsProcess {
    /// Creates a process with a log of this size.
    fn new(node: NodeId, log_bytes: usize) -> Self {
        let site = Site::open(&device::wanted(), &Limits::default(), None).expect("a device");
        let tcp = Tcp::new(node, Settings::default()).expect("descriptors");
        let mut fabric = RdmaViews::new(site, tcp).expect("descriptors");
        let log = fabric.region(LOG, log_bytes).expect("memory");
        Self { fabric, log }
    }

    fn open(&mut self, view: ViewId, own: Rank, client: NodeId) -> Rows {
        let members = [SERVER, client];
        let plan = ViewPlan::with_sizes(view, own, &members, &[4096; 2], view.0);
        let rows = self.fabric.rows(&plan).expect("memory");
        self.fabric.open(view, &rows.memory()).expect("there is room");
        rows
    }

    fn step(&mut self) -> Vec<Event> {
        self.fabric.check_peers();
        let events = std::iter::from_fn(|| self.fabric.poll()).collect();
        while self.fabric.poll_permission().is_some() {}
        events
    }
}

/// Returns the two ends of a connection.
fn pair() -> [Connection; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (other, _) = listener.accept().expect("it came");
    [one, other].map(|stream| Connection { stream, cipher: None })
}

/// Waits until a condition holds, while the processes step.
#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "{what} never comes");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Connects a client to the server, and grants it the right to write to the server's log.
fn meet(
    server: &mut VerbsProcess,
    client: &mut VerbsProcess,
    node: NodeId,
    view: ViewId,
) -> [Rows; 2] {
    let [here, there] = pair();
    let at_server = server.open(view, S, node);
    server.fabric.side_channel_mut().add_peer(node, here).expect("its place is free");
    client.fabric.side_channel_mut().add_peer(SERVER, there).expect("it is the first");
    let at_client = client.open(view, C, node);
    wait_for("readiness", || {
        server.step();
        client.step();
        server.fabric.ready(view, C) && client.fabric.ready(view, S)
    });
    server.fabric.grant(view, C, LOG).expect("it is ready");
    [at_server, at_client]
}

/// The client writes to the server's log, and learns that the write has arrived.
#[track_caller]
fn ensure_way(server: &mut VerbsProcess, client: &mut VerbsProcess, view: ViewId, value: u64) {
    client.log.writer().cell(64).expect("a cell").publish(value);
    let area = Area { region: LOG, offset: 64 };
    let write = Write { source: area, target: area, length: 8, kind: Kind::Guard };
    wait_for("the right", || {
        server.step();
        client.step();
        client.fabric.post(view, S, &[write], Some(Token(value))).is_ok()
    });
    let mut events = Vec::new();
    wait_for("the completion", || {
        server.step();
        events.extend(client.step());
        events.contains(&Event::Completed(Token(value)))
    });
    let cell = server.log.writer().reader().cell(64).expect("a cell");
    wait_for("the write", || cell.load() == value);
}

#[track_caller]
fn await_loss(process: &mut VerbsProcess, view: ViewId) {
    wait_for("the loss", || {
        let is_it = |event: &Event| match event {
            Event::PeerLost { view: of, peer, .. } => (*of, *peer) == (view, C),
            _ => false,
        };
        process.step().iter().any(is_it)
    });
}

#[test]
fn clients_connect_and_leave_over_rdma_during_traffic() {
    let mut server = VerbsProcess::new(SERVER, 1 << 16);
    let mut clients = Vec::new();
    for number in 0..20_u64 {
        let node = NodeId(100 + u32::try_from(number).expect("few"));
        // The ids are in no particular order.
        let view = ViewId(1 + number * 37 % 61);
        let mut client = VerbsProcess::new(node, 4096);
        let rows = meet(&mut server, &mut client, node, view);
        clients.push((view, client, rows));
        for (view, client, _) in &mut clients {
            ensure_way(&mut server, client, *view, view.0 * 100 + number);
        }
        if clients.len() == 4 {
            let place = usize::try_from(number % 4).expect("few");
            let (view, client, _) = clients.remove(place);
            drop(client);
            await_loss(&mut server, view);
            assert_eq!(server.fabric.grant(view, C, LOG), Err(ErrorKind::PeerLost));
            assert!(!server.fabric.may_write(view, C, LOG));
            wait_for("the end", || {
                server.step();
                server.fabric.retire(view)
            });
        }
    }
}

#[test]
fn restarted_process_rejoins_over_rdma() {
    let node = NodeId(7);
    let mut server = VerbsProcess::new(SERVER, 1 << 16);
    for life in 1..=4 {
        let view = ViewId(900 - 100 * life);
        let mut client = VerbsProcess::new(node, 4096);
        let _rows = meet(&mut server, &mut client, node, view);
        ensure_way(&mut server, &mut client, view, life);
        drop(client);
        await_loss(&mut server, view);
        server.fabric.side_channel_mut().part_from(node);
        if life % 2 == 0 {
            // In other cases, the old view ends while the next one exists.
            wait_for("the end", || {
                server.step();
                server.fabric.retire(view)
            });
        }
        assert!(!server.fabric.may_write(view, C, LOG));
    }
}
