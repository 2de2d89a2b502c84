//! A joining node does not hang, neither on an endless state nor because of a member that stalls.

#![allow(clippy::expect_used, clippy::panic)]

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, Description, Forming, Messages, Running, StartError, StartOptions, start,
};
use tramontane_runtime::member::Settings;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;

/// The time for which a member may leave a joining node without data, which is longer than any test
/// waits.
const STALL: Duration = Duration::from_secs(60);

/// A time limit longer than any operation takes here.
const LONG: Duration = Duration::from_secs(300);

/// The state that is sent to a joining node.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Endless bytes.
    WithoutEnd,
    /// The member sends nothing for as long as a test takes.
    Silent,
}

impl Read for State {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::WithoutEnd => std::thread::sleep(Duration::from_millis(1)),
            Self::Silent => std::thread::sleep(2 * STALL),
        }
        into.fill(7);
        Ok(into.len())
    }
}

/// A member, and whether its state has been requested.
struct Supplier(State, Arc<AtomicBool>);

impl Application for Supplier {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        messages.for_each(drop);
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        self.1.store(true, Ordering::Relaxed);
        Box::new(self.0)
    }
}

/// The result of a join, its duration, and whether the state was requested.
type Joined = (Result<Running, StartError>, Duration, bool);

/// Starts node 0, and lets node 1 join it until the time limit passes, or until the join is
/// cancelled in the middle of the state.
fn join(state: State, time_limit: Duration, is_cancelled: bool) -> Joined {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut description = Description::local("joining", 2, 8, 16);
    description.initial = vec![0];
    description.fabric = Carrier::Tcp;
    let listeners: Vec<TcpListener> = description
        .nodes
        .iter_mut()
        .map(|node| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            node.address = Some(listener.local_addr().expect("an address").into());
            listener
        })
        .collect();
    let (never, cancel) = (AtomicBool::new(false), AtomicBool::new(false));
    let is_asked = Arc::new(AtomicBool::new(false));
    let supplier = || Supplier(state, Arc::clone(&is_asked));
    let options = |node: u32, time_limit, cancel| StartOptions {
        node,
        root: Root::under(folder.path()),
        device: DeviceOptions::default(),
        listener: listeners.get(usize::try_from(node).expect("small")).map(|listener| {
            listener.try_clone().expect("a handle").try_into().expect("it listens")
        }),
        time_limit,
        cancel,
        settings: Settings::default(),
        forming: Forming { new_group: true, ..Forming::default() },
        ..StartOptions::new(node)
    };
    let first =
        start(description.clone(), options(0, STALL, &never), supplier()).expect("it is alone");
    let began = Instant::now();
    let joined = std::thread::scope(|scope| {
        scope.spawn(|| {
            while is_cancelled && !is_asked.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(100));
            cancel.store(is_cancelled, Ordering::Relaxed);
        });
        start(description, options(1, time_limit, &cancel), supplier())
    });
    let took = began.elapsed();
    // A supplier that never returns from a read cannot be stopped.
    std::mem::forget(first);
    (joined, took, is_asked.load(Ordering::Relaxed))
}

#[test]
fn cancel_ends_join_during_state_transfer() {
    for state in [State::WithoutEnd, State::Silent] {
        let (joined, took, _) = join(state, LONG, true);
        assert!(matches!(joined, Err(StartError::Cancelled)), "{state:?}");
        assert!(took < STALL / 2, "{state:?}: {took:?}");
    }
}

#[test]
fn time_limit_ends_join_during_state_transfer() {
    for state in [State::WithoutEnd, State::Silent] {
        // On a busy machine, one second may not be enough to reach that point.
        let mut limits =
            (0..4).map(|doubled| join(state, Duration::from_secs(1 << doubled), false));
        let (joined, took, _) =
            limits.find(|(_, _, is_asked)| *is_asked).expect("in the middle of the state");
        let Err(StartError::NotLetIn { why, .. }) = joined else { panic!("{state:?}") };
        assert!(why.contains("time"), "{state:?}: {why}");
        assert!(took < STALL / 2, "{state:?}: {took:?}");
    }
}
