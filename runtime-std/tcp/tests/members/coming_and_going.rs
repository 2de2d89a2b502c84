//! Processes that arrive one at a time while others work, in views of two, and end again, as a
//! process's clients and a restarted process do.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{LOG, LOG_BYTES, PATIENCE, log_write, small};
use tramontane_control::Connection;
use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric, HostFabric as _, HostRegions as _, Kind, LossCause,
    PermissionEvent, Permissions as _, RegionMemory as _, Token, ViewPlan, ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_tcp::{RegionMemory, Rows, Settings, Tcp};

const SERVER: NodeId = NodeId(1);
const ROW_BYTES: usize = 4096;

/// The ranks of a server and of its client, in their view of two.
const S: Rank = Rank(0);
const C: Rank = Rank(1);

struct TcpProcess {
    fabric: Tcp,
    log: RegionMemory,
}

impl TcpProcess {
    fn new(node: NodeId, settings: Settings) -> Self {
        let mut fabric = Tcp::new(node, settings).expect("descriptors");
        let log = fabric.region(LOG, LOG_BYTES).expect("memory");
        Self { fabric, log }
    }

    fn open(&mut self, view: ViewId, own: Rank, client: NodeId) -> Rows {
        let members = [SERVER, client];
        let plan = ViewPlan::with_sizes(view, own, &members, &[ROW_BYTES; 2], view.0);
        let rows = self.fabric.rows(&plan).expect("memory");
        self.fabric.open(view, &rows.memory()).expect("there is room");
        rows
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.fabric.poll()).collect()
    }

    fn logged(&self, offset: usize) -> u64 {
        self.log.writer().reader().cell(offset).expect("a cell").load()
    }
}

/// Returns the two ends of a connection.
fn pair() -> [Connection; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (other, _) = listener.accept().expect("it came");
    [one, other].map(|stream| Connection { stream, cipher: None })
}

/// Waits while the processes work.
#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "{what} never comes");
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Connects a client to the server, and lets it write to the server's log.
fn meet(server: &mut TcpProcess, client: &mut TcpProcess, node: NodeId, view: ViewId) -> [Rows; 2] {
    let [here, there] = pair();
    // Covers both orders: one end opens the view before it knows the other, and the other end
    // afterwards.
    let at_server = server.open(view, S, node);
    server.fabric.add_peer(node, here).expect("its place is free");
    client.fabric.add_peer(SERVER, there).expect("it is the first");
    let at_client = client.open(view, C, node);
    wait_for("readiness", || {
        server.fabric.carry();
        client.fabric.carry();
        server.fabric.ready(view, C) && client.fabric.ready(view, S)
    });
    server.fabric.grant(view, C, LOG).expect("it is ready");
    [at_server, at_client]
}

/// Writes to the server's log as the client, and waits until it has arrived.
#[track_caller]
fn ensure_way(server: &mut TcpProcess, client: &mut TcpProcess, view: ViewId, value: u64) {
    client.log.writer().cell(64).expect("a cell").publish(value);
    wait_for("the right", || {
        client.fabric.carry();
        client.fabric.post(view, S, &[log_write(64, 8)], Some(Token(value))).is_ok()
    });
    let mut events = Vec::new();
    wait_for("the completion", || {
        server.fabric.carry();
        events.extend(client.events());
        events.contains(&Event::Completed(Token(value)))
    });
    assert_eq!(server.logged(64), value);
}

fn await_loss(process: &mut TcpProcess) -> Event {
    let mut lost = None;
    wait_for("the loss", || {
        let is_loss = |event: &Event| matches!(event, Event::PeerLost { .. });
        lost = process.events().into_iter().find(is_loss);
        lost.is_some()
    });
    lost.expect("it was told")
}

#[test]
fn clients_connect_and_leave_while_others_work() {
    let mut server = TcpProcess::new(SERVER, Settings::default());
    let mut clients = Vec::new();
    for number in 0..60_u64 {
        let node = NodeId(100 + u32::try_from(number).expect("few"));
        // The ids are in no particular order.
        let view = ViewId(1 + number * 37 % 61);
        let mut client = TcpProcess::new(node, Settings::default());
        meet(&mut server, &mut client, node, view);
        clients.push((view, client));
        for (view, client) in &mut clients {
            ensure_way(&mut server, client, *view, view.0 * 100 + number);
        }
        if clients.len() == 5 {
            // Some clients announce that they leave, and others do not.
            let (view, mut client) = clients.remove(usize::try_from(number % 5).expect("few"));
            let says_so = number % 2 == 0;
            if says_so {
                client.fabric.leave();
            }
            drop(client);
            let cause = if says_so { LossCause::Left } else { LossCause::Exited };
            assert_eq!(await_loss(&mut server), Event::PeerLost { view, peer: C, cause });
            assert_eq!(server.fabric.grant(view, C, LOG), Err(ErrorKind::PeerLost));
            assert!(!server.fabric.may_write(view, C, LOG));
            assert!(server.fabric.retire(view));
        }
    }
}

#[test]
fn restarted_process_gets_a_new_view() {
    let node = NodeId(7);
    let mut server = TcpProcess::new(SERVER, Settings::default());
    let mut client = TcpProcess::new(node, Settings::default());
    let (mut view, mut rows) = (ViewId(900), None::<[Rows; 2]>);
    for life in 1..=6 {
        rows = Some(meet(&mut server, &mut client, node, view));
        ensure_way(&mut server, &mut client, view, life);
        client = TcpProcess::new(node, Settings::default());
        // The client's next process may connect before the end of this one has been noticed.
        if life % 2 == 0 {
            await_loss(&mut server);
        }
        server.fabric.part_from(node);
        let before = view;
        view = ViewId(view.0 - 100);
        if life % 3 == 0 {
            assert!(server.fabric.retire(before));
        } else {
            // The old view reports the loss at the latest when another process replaces the lost
            // one.
            let [here, there] = pair();
            server.fabric.add_peer(node, here).expect("its place is free");
            if life % 2 == 1 {
                let loss = await_loss(&mut server);
                let cause = LossCause::Exited;
                assert_eq!(loss, Event::PeerLost { view: before, peer: C, cause });
            }
            let post = server.fabric.post(before, C, &[Write::of_row(0, 8, Kind::Guard)], None);
            assert_eq!(post, Err(ErrorKind::PeerLost), "the old view leads to nobody");
            assert!(server.fabric.retire(before));
            // That process ends before it has opened anything.
            drop(there);
            server.fabric.part_from(node);
        }
        assert!(!server.fabric.may_write(before, C, LOG));
    }
    assert!(rows.is_some());
}

#[test]
fn write_permission_applies_to_a_single_view() {
    let node = NodeId(7);
    let (mut server, mut client) =
        (TcpProcess::new(SERVER, small()), TcpProcess::new(node, Settings::default()));
    let views = [ViewId(5), ViewId(1), ViewId(u64::MAX)];
    meet(&mut server, &mut client, node, views[0]);
    let rows = views[1..].iter().map(|view| {
        client.open(*view, C, node);
        server.open(*view, S, node)
    });
    let rows: Vec<Rows> = rows.collect();
    wait_for("readiness", || {
        client.fabric.carry();
        server.fabric.carry();
        views.iter().all(|view| client.fabric.ready(*view, S))
    });
    ensure_way(&mut server, &mut client, views[0], 1);
    for view in &views[1..] {
        let refused = client.fabric.post(*view, S, &[log_write(64, 8)], None);
        assert_eq!(refused, Err(ErrorKind::Revoked));
        server.fabric.grant(*view, C, LOG).expect("it is ready");
        ensure_way(&mut server, &mut client, *view, view.0 / 2);
    }
    // One view ends, and the others continue.
    assert!(server.fabric.retire(views[1]) && client.fabric.retire(views[0]));
    ensure_way(&mut server, &mut client, views[2], 4);
    let gone = client.fabric.post(views[1], S, &[log_write(64, 8)], Some(Token(9)));
    assert_eq!(gone, Err(ErrorKind::PeerLost), "its owner has ended the view");
    assert!(!server.fabric.may_write(views[0], C, LOG), "its writer has ended the view");
    drop(rows);
}

/// Posts to a region are denied if the region's owner then ends the view. They never complete.
#[test]
fn lists_unconfirmed_when_view_ends_are_denied() {
    let node = NodeId(7);
    let view = ViewId(3);
    let (mut server, mut client) =
        (TcpProcess::new(SERVER, Settings::default()), TcpProcess::new(node, Settings::default()));
    meet(&mut server, &mut client, node, view);
    ensure_way(&mut server, &mut client, view, 1);
    client.log.writer().cell(64).expect("a cell").publish(2);
    client.fabric.post(view, S, &[log_write(64, 8)], Some(Token(2))).expect("it has the right");
    assert!(server.fabric.retire(view));
    let (mut events, mut told) = (Vec::new(), Vec::new());
    wait_for("the denial", || {
        server.fabric.carry();
        events.extend(client.events());
        told.extend(client.fabric.poll_permission());
        told.contains(&PermissionEvent::Denied { view, peer: S, region: LOG })
    });
    assert!(!events.contains(&Event::Completed(Token(2))));
    assert_eq!(server.logged(64), 1);
}

/// A long answer is sent in pieces, with rows in between.
#[test]
fn long_read_does_not_delay_rows() {
    let node = NodeId(7);
    let (view, bytes) = (ViewId(3), 32 << 20);
    let big = |node| {
        let mut fabric = Tcp::new(node, small()).expect("descriptors");
        let log = fabric.region(LOG, bytes).expect("memory");
        TcpProcess { fabric, log }
    };
    let (mut server, mut client) = (big(SERVER), big(node));
    let [at_server, at_client] = meet(&mut server, &mut client, node, view);
    server.log.writer().apply(0, &vec![7; bytes]).expect("in the region");
    let area = Area { region: LOG, offset: 0 };
    client.fabric.read(view, S, area, area, bytes, Token(1)).expect("there is room");
    let (mut beats, mut seen, mut events) = (0_u64, 0, Vec::new());
    wait_for("the read", || {
        at_server.row().cell(0).expect("a cell").publish(beats + 1);
        let beat = server.fabric.post(view, C, &[Write::of_row(0, 8, Kind::Guard)], None);
        beats += u64::from(beat.is_ok());
        server.fabric.carry();
        events.extend(client.events());
        let is_done = events.contains(&Event::Completed(Token(1)));
        if !is_done {
            seen = at_client.rows()[S.index()].cell(0).expect("a cell").load();
        }
        is_done
    });
    assert!(seen > 8, "{beats} beats went, {seen} came before the read was done");
    let mut last = [0; 64];
    client.log.writer().reader().read(bytes - 64, &mut last).expect("in the region");
    assert_eq!(last, [7; 64]);
}
