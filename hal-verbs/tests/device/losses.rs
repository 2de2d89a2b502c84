//! Peers that are dead, silent, stopped or killed; a view that ends; and what they must not leave
//! behind.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{
    ErrorKind, Event, Fabric, HostFabric as _, LossCause, ViewRows as _,
};
use tramontane_core::ids::Rank;
use tramontane_tcp::Tcp;
use tramontane_verbs::devices::DeviceKind;
use tramontane_verbs::status::WorkStatus;
use tramontane_verbs::timing::LossTimes;
use tramontane_verbs::{Limits, RdmaViews};

use super::group::beside::{Beside, meet, meet_all, open_all};
use super::group::{GroupShape, VIEW, device};
use super::{A, B, content, drain, guard, members, pair, wait_for};

const ROW_BYTES: usize = 16_384;

fn lost(events: &[Event], peer: Rank) -> Option<LossCause> {
    events.iter().find_map(|event| match event {
        Event::PeerLost { peer: told, cause, .. } if *told == peer => Some(*cause),
        _ => None,
    })
}

#[test]
fn silent_peer_is_detected_within_loss_time() {
    let loss_time = Duration::from_millis(400);
    let times = LossTimes::at_least(loss_time, DeviceKind::SoftRoce, None);
    let limits = Limits { loss_time, ..Limits::default() };
    let (mut a, mut b) = pair(&GroupShape { limits, ..GroupShape::default() });
    // B's queue pair is reset: it answers nothing, but its process continues.
    a.fabric.cut(VIEW, B);
    b.fabric.post(VIEW, A, &[guard(64, 8)], None).expect("it is not known yet");
    let mut cause = None;
    let took = wait_for("the loss", times.longest() * 2, || {
        cause = lost(&drain(&mut b.fabric), A);
        cause.is_some()
    });
    println!(
        "asked for {loss_time:?}, rounded to {:?} ({times:?}), noticed after {took:?}",
        times.least()
    );
    assert_eq!(cause, Some(LossCause::Unreachable));
    let loss = b.fabric.loss_of(A).expect("a loss");
    println!("{loss}");
    assert_eq!(loss.status, Some(WorkStatus::RetriesExceeded));
    assert!(took >= loss_time / 2, "{took:?}");
    assert_eq!(b.fabric.post(VIEW, A, &[guard(64, 8)], None), Err(ErrorKind::PeerLost));
}

#[test]
fn leaving_peer_is_distinguished_from_lost_peer() {
    let mut all = meet_all(3, &Limits::default(), ROW_BYTES);
    open_all(&mut all);
    let (mut c, b) = (all.pop().expect("3"), all.pop().expect("2"));
    let mut a = all.pop().expect("1");
    c.rows.row().apply(64, &[3; 8]).expect("in the row");
    c.fabric.post(VIEW, A, &[guard(64, 8)], None).expect("it is there");
    c.fabric.leave();
    drop(c);
    drop(b);
    let mut causes = [None; 2];
    wait_for("both losses", Duration::from_secs(10), || {
        a.fabric.check_peers();
        for event in events(&mut a.fabric) {
            if let Event::PeerLost { peer, cause, .. } = event {
                assert!(causes[peer.index() - 1].replace(cause).is_none(), "told once");
            }
        }
        causes.iter().all(Option::is_some)
    });
    assert_eq!(causes, [Some(LossCause::Exited), Some(LossCause::Left)]);
    assert_eq!(look(&a, Rank(2)), [3; 8], "what it posted before it left has arrived");
}

#[test]
fn peer_loss_wakes_a_sleeping_member() {
    let mut all = meet_all(2, &Limits::default(), ROW_BYTES);
    open_all(&mut all);
    let (b, mut a) = (all.pop().expect("2"), all.pop().expect("1"));
    assert!(a.fabric.arm());
    let going = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(b);
    });
    let started = Instant::now();
    assert!(a.fabric.sleep(Duration::from_secs(20)));
    assert!(started.elapsed() < Duration::from_secs(10));
    a.fabric.disarm();
    assert_eq!(lost(&events(&mut a.fabric), B), Some(LossCause::Exited));
    going.join().expect("no panic");
}

/// Another process with rank 1, which runs this program.
struct OtherProcess {
    child: Child,
}

impl OtherProcess {
    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // The process may have exited or be stopped. Neither does any harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CHILD: &str = "TRAMONTANE_VERBS_TEST_CHILD";

/// Joins as one of two processes.
fn join_process(own: Rank, addresses: &[SocketAddr; 2], listener: Option<TcpListener>) -> Beside {
    let limits = Limits { loss_time: Duration::from_millis(500), ..Limits::default() };
    let mut member = meet(&device::wanted(), own, addresses, listener, &limits, ROW_BYTES);
    member.open();
    wait_for("the other", Duration::from_secs(60), || member.is_ready());
    member
}

/// Returns the events about peers.
fn events(fabric: &mut RdmaViews<Tcp>) -> Vec<Event> {
    std::iter::from_fn(|| fabric.poll()).filter(|event| *event != Event::Woken).collect()
}

/// Returns a member's view of a row, at the offset that all members write in this test.
fn look(member: &Beside, owner: Rank) -> [u8; 8] {
    let mut bytes = [0; 8];
    member.rows.rows()[owner.index()].read(64, &mut bytes).expect("in the row");
    bytes
}

fn write_row(member: &Beside, offset: usize, bytes: &[u8]) {
    member.rows.row().apply(offset, bytes).expect("in the row");
}

/// Runs the other process: it joins, reports that, and echoes the value in A's row until its input
/// ends.
#[test]
#[ignore = "started by the tests that need a process"]
fn child_process() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let addresses: Vec<SocketAddr> =
        text.split(' ').map(|one| one.parse().expect("an address")).collect();
    let mut member = join_process(B, &[addresses[0], addresses[1]], None);
    println!("joined");
    loop {
        if member.fabric.arm() {
            member.fabric.sleep(Duration::from_millis(50));
        }
        member.fabric.disarm();
        if lost(&events(&mut member.fabric), A).is_some() {
            return;
        }
        let value = look(&member, A);
        if value != look(&member, B) {
            write_row(&member, 64, &value);
            let _ = member.fabric.post(VIEW, A, &[guard(64, 8)], None);
        }
    }
}

fn start() -> (Beside, OtherProcess) {
    assert!(device::real().is_some(), "name a device of the machine: TRAMONTANE_VERBS_DEVICE");
    let free = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let (own, other) = (free(), free());
    let addresses =
        [own.local_addr().expect("an address"), other.local_addr().expect("an address")];
    drop(other);
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["losses::child_process", "--exact", "--ignored", "--nocapture"])
        .env(CHILD, format!("{} {}", addresses[0], addresses[1]))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("its output");
    let member = join_process(A, &addresses, Some(own));
    let mut lines = BufReader::new(output).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("joined"))));
    // The process's other output is discarded.
    std::thread::spawn(move || lines.for_each(drop));
    (member, OtherProcess { child })
}

fn echo(member: &mut Beside, value: u8) -> Duration {
    write_row(member, 64, &[value; 8]);
    wait_for("room", Duration::from_secs(20), || {
        events(&mut member.fabric);
        member.fabric.post(VIEW, B, &[guard(64, 8)], None).is_ok()
    });
    wait_for("the echo", Duration::from_secs(20), || {
        events(&mut member.fabric);
        look(member, B) == [value; 8]
    })
}

#[test]
fn stopped_receiver_still_receives_and_resumes() {
    if !device::is_shared_by_processes() {
        return;
    }
    let (mut a, b) = start();
    println!("echoed after {:?}", echo(&mut a, 1));
    b.signal("-STOP");
    // The stopped process's NIC answers for it, so no queue fills and nothing is lost.
    for value in 2..=100 {
        write_row(&a, 64, &[value; 8]);
        write_row(&a, 4096, &[value; 8192]);
        wait_for("room", Duration::from_secs(20), || {
            events(&mut a.fabric);
            a.fabric.post(VIEW, B, &[content(4096, 8192), guard(64, 8)], None).is_ok()
        });
    }
    // Nor do rings use more receives than the process posted before it was stopped.
    for _ in 0..1000 {
        a.fabric.wake(VIEW, B);
        if a.fabric.arm() {
            a.fabric.sleep(Duration::from_micros(100));
        }
        a.fabric.disarm();
    }
    wait_for("the end of all that is under way", Duration::from_secs(20), || {
        a.fabric.flush();
        a.fabric.carry();
        a.fabric.in_flight() == 0
    });
    let notices = a.fabric.counters().notices_sent;
    println!("1000 wake-ups and 1000 naps while it is stopped: {notices} notices");
    assert!(notices <= 10, "{notices}");
    assert_eq!(lost(&events(&mut a.fabric), B), None);
    assert_ne!(look(&a, B), [100; 8]);
    b.signal("-CONT");
    println!("resumed: echoed after {:?}", echo(&mut a, 101));
}

#[test]
fn killed_peer_is_reported_lost_immediately() {
    if !device::is_shared_by_processes() {
        return;
    }
    let (mut a, b) = start();
    echo(&mut a, 1);
    b.signal("-KILL");
    let mut cause = None;
    let took = wait_for("the loss", Duration::from_secs(10), || {
        // Acts like a busy member: it posts, polls, and occasionally checks its peers.
        let _ = a.fabric.post(VIEW, B, &[content(4096, 8192), guard(64, 8)], None);
        a.fabric.check_peers();
        cause = lost(&events(&mut a.fabric), B);
        cause.is_some()
    });
    println!("killed: {} after {took:?}", a.fabric.loss_of(VIEW, B).expect("a loss"));
    assert!(matches!(cause, Some(LossCause::Exited | LossCause::Unreachable)));
    assert_eq!(a.fabric.post(VIEW, B, &[guard(64, 8)], None), Err(ErrorKind::PeerLost));
    assert_eq!(a.fabric.in_flight(), 0);
    std::io::stdout().flush().expect("flushed");
}

#[test]
fn views_retire_quickly_at_both_ends() {
    const LOSS_TIME: Duration = Duration::from_secs(8);
    let limits = Limits { loss_time: LOSS_TIME, ..Limits::default() };
    let (mut a, mut b) = pair(&GroupShape { limits, ..GroupShape::default() });
    for member in [&mut a, &mut b] {
        let to = if member.rows.own() == A { B } else { A };
        member.fabric.post(VIEW, to, &[content(0, 8192), guard(64, 8)], None).expect("room");
    }
    let took = wait_for("the end of both", Duration::from_secs(10), || {
        let ends = [a.fabric.retire(VIEW), b.fabric.retire(VIEW)];
        ends == [true; 2]
    });
    println!("both retired after {took:?}");
    assert!(took < LOSS_TIME / 2, "nobody waits for a time-out: {took:?}");
    assert!(lost(&drain(&mut a.fabric), B).is_none());
}

/// One of two hosts, in the lab: `run --guests 2 -- TEST --- TEST`. The first host has the second
/// killed, as if by a power failure, and reports how long it takes to notice this.
#[test]
#[ignore = "needs two guests of the lab"]
fn killed_host_is_detected_within_five_seconds() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let own: u16 = variable("LAB_GUEST").parse().expect("0 or 1");
    let (here, there) = (variable("LAB_ADDRESS"), variable("LAB_PEER_ADDRESS"));
    let at = |address: &str, rank: u16| -> SocketAddr {
        format!("{address}:{}", 7000 + rank).parse().expect("an address")
    };
    let addresses =
        if own == 0 { [at(&here, 0), at(&there, 1)] } else { [at(&there, 0), at(&here, 1)] };
    let (own, peer) = (Rank(own), Rank(1 - own));
    let mut member = join_process(own, &addresses, None);
    let mut value = 0_u64;
    let until = Instant::now() + Duration::from_secs(60);
    let mut killed = None;
    while Instant::now() < until {
        let theirs = u64::from_ne_bytes(look(&member, peer));
        if theirs + u64::from(own == A) > value || killed.is_some() {
            value = theirs.max(value) + u64::from(own == A);
            write_row(&member, 64, &value.to_ne_bytes());
            let _ = member.fabric.post(VIEW, peer, &[content(4096, 4096), guard(64, 8)], None);
        }
        if own == A && value >= 200 && killed.is_none() {
            let requests = variable("LAB_REQUESTS");
            let file = std::fs::OpenOptions::new().append(true).open(requests);
            file.and_then(|mut file| file.write_all(b"kill 1\n")).expect("asked");
            killed = Some(Instant::now());
        }
        member.fabric.check_peers();
        if let Some(cause) = lost(&events(&mut member.fabric), peer) {
            let asked = killed.expect("nobody is lost before").elapsed();
            let loss = member.fabric.loss_of(VIEW, peer).expect("a loss");
            println!("{value} rounds; lost {asked:?} after asking: {loss}");
            assert_eq!(cause, LossCause::Unreachable);
            assert!(asked < Duration::from_secs(5), "{asked:?}");
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    panic!("{own} saw {value} and nobody was lost");
}

/// The network below the device disappears under a group. (`rdma link delete` on a software device
/// waits for its users, so the lab cannot test the removal of a device in use.)
#[test]
#[ignore = "takes the network away"]
fn loss_of_network_is_reported_for_all_peers() {
    let limits = Limits { loss_time: Duration::from_millis(400), ..Limits::default() };
    let mut all = members(&GroupShape { limits, ..GroupShape::default() });
    let status =
        Command::new("ip").args(["link", "set", "dummy0", "down"]).status().expect("the ip tool");
    assert!(status.success());
    let a = &mut all[0];
    for to in [B, Rank(2)] {
        a.fabric.post(VIEW, to, &[guard(64, 8)], None).expect("it is not known yet");
    }
    let mut told = Vec::new();
    let took = wait_for("the losses", Duration::from_secs(20), || {
        told.extend(drain(&mut a.fabric));
        lost(&told, B).is_some() && lost(&told, Rank(2)).is_some()
    });
    println!("{told:?} after {took:?}: {}", a.fabric.loss_of(B).expect("a loss"));
    assert_eq!(told.len(), 2, "each told once");
    assert_eq!(a.fabric.post(VIEW, B, &[guard(64, 8)], None), Err(ErrorKind::PeerLost));
    assert!(a.fabric.retire(VIEW), "nothing is under way any more");
}

/// Returns this process's resident memory in KiB.
fn resident_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    line.split_whitespace().nth(1).and_then(|size| size.parse().ok()).expect("a number")
}

/// Environment variable that tells this process to run only one test.
const ALONE: &str = "TRAMONTANE_VERBS_ALONE";

/// The memory of a process includes that of parallel tests, so this test runs in a process of its
/// own.
#[test]
fn device_objects_do_not_leak_over_rounds() {
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().expect("this program");
        let mut alone = std::process::Command::new(program);
        alone.args(["--exact", "losses::device_objects_do_not_leak_over_rounds", "--nocapture"]);
        let status = alone.env(ALONE, "1").status().expect("it starts");
        return assert!(status.success(), "{status}");
    }
    let rounds: u32 = std::env::var("TRAMONTANE_VERBS_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    let round = |index: u32| {
        let (mut a, b) = pair(&GroupShape::default());
        a.fabric.post(VIEW, B, &[guard(64, 8)], None).expect("room");
        match index % 3 {
            0 => {
                let _ = a.fabric.retire(VIEW);
            }
            1 => a.fabric.cut(VIEW, B),
            _ => a.fabric.leave(),
        }
        drop(b);
    };
    // These first rounds fill the caches of allocators and libraries.
    (0..10).for_each(round);
    let (before, kb) = (device::objects(), resident_kb());
    let started = Instant::now();
    (0..rounds).for_each(round);
    let (after, kb_after) = (device::objects(), resident_kb());
    println!(
        "{rounds} rounds in {:?}: {before} -> {after}; {kb} kB -> {kb_after} kB",
        started.elapsed()
    );
    assert_eq!(before, after);
    assert!(kb_after < kb + 2048, "{kb} kB -> {kb_after} kB");
}
