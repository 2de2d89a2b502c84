//! Groups of block multicasts: nodes that are threads of this process, over each fabric; over RDMA where there is a device, as
//! in `hal-verbs/lab/ci groups`.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{Cause, Window};
use tramontane_runtime::blocks::{
    BlockNode, Buffer, CloseFailure, CreateError, Ended, Group, GroupOptions, Recipient, SendRefusal,
};
use tramontane_runtime::join::{JoinOptions, Meeting, NetworkMeeting};
use tramontane_runtime::joined::BlockStore;
use tramontane_runtime::member::{Settings, Stopped};
use tramontane_runtime::shared_memory::{GroupName, Root};

/// How long anything may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

const BLOCK: usize = 1000;

const OPTIONS: GroupOptions = GroupOptions {
    algorithm: Algorithm::Pipeline,
    block_bytes: BLOCK,
    message_max: 100 * BLOCK,
    window: Window { receives: 2, sends: 2 },
};

/// What a recipient was told.
#[derive(Debug)]
enum Told {
    Completed(u64, Vec<u8>),
    Ended(Ended),
}

/// Keeps what it is told. `room` is how large a message it has memory for.
struct Keeper {
    store: BlockStore,
    told: Sender<Told>,
    room: usize,
}

impl Recipient for Keeper {
    fn incoming(&mut self, _: u64, bytes: usize) -> Option<Buffer> {
        if bytes > self.room {
            return None;
        }
        Buffer::new(&self.store, bytes).ok()
    }

    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize) {
        let _ = self.told.send(Told::Completed(message, buffer[..bytes].to_vec()));
    }

    fn ended(&mut self, ended: &Ended) {
        let _ = self.told.send(Told::Ended(ended.clone()));
    }
}

/// Nodes that have met.
struct Crowd {
    nodes: Vec<Option<BlockNode>>,
    _folder: TempDir,
}

impl Crowd {
    /// The same number of nodes over each fabric.
    fn each(count: u32, test: impl Fn(Crowd)) {
        let folder = TempDir::new().expect("a folder");
        let root = Root::under(folder.path());
        let name = GroupName::new("blocks").expect("a name");
        let shared = Meeting::SharedMemory { root, name };
        test(Self::meet(folder, &vec![shared; count as usize]));
        let listeners: Vec<TcpListener> =
            (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")).collect();
        let addresses: Vec<SocketAddr> =
            listeners.iter().map(|listener| listener.local_addr().expect("its address")).collect();
        let meetings = listeners.into_iter().map(|listener| {
            let (addresses, listener) = (addresses.clone(), Some(Arc::new(listener)));
            NetworkMeeting { addresses, listener, ..NetworkMeeting::default() }
        });
        let meetings: Vec<NetworkMeeting> = meetings.collect();
        let over_tcp: Vec<Meeting> = meetings.iter().cloned().map(Meeting::Tcp).collect();
        test(Self::meet(TempDir::new().expect("a folder"), &over_tcp));
        if let Some(over_rdma) = over_rdma(&meetings) {
            test(Self::meet(TempDir::new().expect("a folder"), &over_rdma));
            println!("over RDMA too");
        }
    }

    fn meet(folder: TempDir, meetings: &[Meeting]) -> Self {
        let ids: Vec<NodeId> = (0..meetings.len() as u32).map(NodeId).collect();
        let cancel = AtomicBool::new(false);
        let join = |id, meeting: &Meeting| {
            let meeting = meeting.clone();
            let settings = Settings::default();
            let options = JoinOptions { meeting, time_limit: PATIENCE, cancel: &cancel, settings };
            BlockNode::join(&ids, id, &options).expect("all come")
        };
        let join = &join;
        let nodes = std::thread::scope(|scope| {
            let joining =
                ids.iter().zip(meetings).map(|(id, meeting)| scope.spawn(move || join(*id, meeting)));
            let joining: Vec<_> = joining.collect();
            joining.into_iter().map(|joining| Some(joining.join().expect("it joins"))).collect()
        });
        Self { nodes, _folder: folder }
    }

    fn node(&self, id: u32) -> &BlockNode {
        self.nodes[id as usize].as_ref().expect("it is there")
    }

    /// One member's part in a group.
    fn create(&self, id: u32, number: u16, members: &[u32], options: GroupOptions, room: usize) -> Part {
        let members: Vec<NodeId> = members.iter().copied().map(NodeId).collect();
        let (told, heard) = mpsc::channel();
        let keeper = Keeper { store: self.node(id).store().clone(), told, room };
        let group = self.node(id).create(number, &members, options, keeper).expect("a group");
        Part { group, heard }
    }

    /// All members' parts in a group.
    fn create_all(&self, number: u16, members: &[u32], options: GroupOptions) -> Vec<Part> {
        members.iter().map(|id| self.create(*id, number, members, options, usize::MAX)).collect()
    }

    fn filled(&self, id: u32, bytes: &[u8]) -> Buffer {
        let mut buffer = self.node(id).buffer(bytes.len()).expect("memory");
        buffer[..bytes.len()].copy_from_slice(bytes);
        buffer
    }
}

/// The same meetings, to go on over RDMA, if there is a device.
#[cfg(feature = "verbs")]
fn over_rdma(meetings: &[NetworkMeeting]) -> Option<Vec<Meeting>> {
    let device = tramontane_runtime::rdma::DeviceOptions::default();
    tramontane_runtime::rdma::choose(&device).ok()?;
    let on = |network: &NetworkMeeting| {
        tramontane_runtime::rdma::meeting(network.clone(), &device).expect("it is built in")
    };
    Some(meetings.iter().map(on).collect())
}

#[cfg(not(feature = "verbs"))]
fn over_rdma(_: &[NetworkMeeting]) -> Option<Vec<Meeting>> {
    None
}

struct Part {
    group: Group,
    heard: Receiver<Told>,
}

impl Part {
    #[track_caller]
    fn next(&self) -> Told {
        self.heard.recv_timeout(PATIENCE).expect("it is told")
    }

    #[track_caller]
    fn expect_message(&self, number: u64, bytes: &[u8]) {
        match self.next() {
            Told::Completed(seen, content) => assert!(seen == number && content == bytes, "message {number}"),
            Told::Ended(ended) => panic!("message {number} does not come: {ended}"),
        }
    }

    #[track_caller]
    fn expect_end(&self) -> Ended {
        loop {
            if let Told::Ended(ended) = self.next() {
                return ended;
            }
        }
    }
}

/// Bytes that no other message has.
fn content(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| (place.wrapping_mul(2_654_435_761 + number) >> 7) as u8).collect()
}

#[test]
fn every_message_reaches_everybody_whole_and_in_order() {
    let sizes = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 7 * BLOCK + 3, 100 * BLOCK];
    let racks = std::num::NonZeroU16::new(2).expect("two");
    let algorithms = [
        Algorithm::Pipeline,
        Algorithm::Sequential,
        Algorithm::Chain,
        Algorithm::Tree,
        Algorithm::Hybrid { racks },
    ];
    Crowd::each(5, |crowd| {
        for (number, algorithm) in (0..).zip(algorithms) {
            let members = [2, 0, 4, 1, 3];
            let parts = crowd.create_all(number, &members, GroupOptions { algorithm, ..OPTIONS });
            let root = &parts[0].group;
            for (message, bytes) in (0..).zip(sizes) {
                let buffer = crowd.filled(2, &content(message, bytes));
                assert_eq!(root.send(buffer, bytes).expect("it is sent"), message);
            }
            assert_eq!(root.close(PATIENCE), Ok(Ended::Closed));
            for part in &parts {
                for (message, bytes) in (0..).zip(sizes) {
                    part.expect_message(message, &content(message, bytes));
                }
                assert_eq!(part.expect_end(), Ended::Closed);
            }
        }
    });
}

#[test]
fn groups_that_overlap_run_at_once_and_who_is_late_is_waited_for() {
    Crowd::each(3, |crowd| {
        let rotations = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let roots: Vec<Part> = (0..)
            .zip(rotations)
            .map(|(number, members)| crowd.create(members[0], number, &members, OPTIONS, usize::MAX))
            .collect();
        for (number, (part, members)) in (0..).zip(roots.iter().zip(rotations)) {
            for message in 0..10 {
                let bytes = content(number * 100 + message, 5 * BLOCK);
                part.group.send(crowd.filled(members[0], &bytes), bytes.len()).expect("it is sent");
            }
        }
        // The others come after everything was sent.
        for (number, members) in (0..).zip(rotations) {
            let late = members[1..].iter().map(|id| crowd.create(*id, number, &members, OPTIONS, usize::MAX));
            for part in late.collect::<Vec<_>>() {
                for message in 0..10 {
                    part.expect_message(message, &content(u64::from(number) * 100 + message, 5 * BLOCK));
                }
            }
        }
        for part in roots {
            assert_eq!(part.group.close(PATIENCE), Ok(Ended::Closed));
        }
    });
}

#[test]
fn who_has_no_memory_ends_that_group_for_all_and_no_other() {
    Crowd::each(3, |crowd| {
        let members = [0, 1, 2];
        let other = crowd.create_all(7, &members, OPTIONS);
        let room = |id| if id == 1 { 4 * BLOCK } else { usize::MAX };
        let parts: Vec<Part> =
            members.iter().map(|id| crowd.create(*id, 3, &members, OPTIONS, room(*id))).collect();
        let root = &parts[0].group;
        for bytes in [3 * BLOCK, 30 * BLOCK] {
            root.send(crowd.filled(0, &content(0, bytes)), bytes).expect("it is sent");
        }
        let failed = Ended::Failed { node: NodeId(1), cause: Cause::NoMemory };
        for part in &parts {
            part.expect_message(0, &content(0, 3 * BLOCK));
            assert_eq!(part.expect_end(), failed);
        }
        let refused = root.send(crowd.filled(0, &[1]), 1).expect_err("it is over");
        assert_eq!(refused.why, SendRefusal::Ended(failed));
        other[0].group.send(crowd.filled(0, &content(9, BLOCK)), BLOCK).expect("it is sent");
        for part in &other {
            part.expect_message(0, &content(9, BLOCK));
        }
    });
}

#[test]
fn a_node_that_goes_ends_its_groups_and_the_others_go_on() {
    Crowd::each(4, |mut crowd| {
        let with = crowd.create_all(0, &[0, 1, 2, 3], OPTIONS);
        let without = crowd.create_all(1, &[1, 0, 2], OPTIONS);
        let own = crowd.create_all(2, &[3, 1], OPTIONS);
        with[0].group.send(crowd.filled(0, &content(1, 9 * BLOCK)), 9 * BLOCK).expect("it is sent");
        for part in &with {
            part.expect_message(0, &content(1, 9 * BLOCK));
        }
        drop(crowd.nodes[3].take());
        assert_eq!(with[3].expect_end(), Ended::Stopped(Stopped::Closed));
        assert_eq!(own[0].expect_end(), Ended::Stopped(Stopped::Closed));
        for part in with[..3].iter().chain(&own[1..]) {
            let Ended::Failed { node, cause } = part.expect_end() else { panic!("it was not closed") };
            assert_eq!(node, NodeId(3));
            let is_loss =
                matches!(cause, Cause::Lost(LossCause::Left | LossCause::Exited | LossCause::Unreachable));
            assert!(is_loss, "{cause:?}");
        }
        without[0].group.send(crowd.filled(1, &content(2, 40 * BLOCK)), 40 * BLOCK).expect("it is sent");
        for part in &without {
            part.expect_message(0, &content(2, 40 * BLOCK));
        }
        assert_eq!(without[0].group.close(PATIENCE), Ok(Ended::Closed));
    });
}

#[test]
fn what_is_refused_says_why_and_gives_the_buffer_back() {
    Crowd::each(2, |crowd| {
        let parts = crowd.create_all(0, &[0, 1], OPTIONS);
        let refused = parts[1].group.send(crowd.filled(1, &[5]), 1).expect_err("it is not the root");
        assert_eq!((refused.why, refused.buffer[0]), (SendRefusal::NotRoot, 5));
        let why = |bytes, limit| {
            let sent = parts[0].group.send(crowd.filled(0, &vec![1; limit]), bytes);
            sent.expect_err("too large").why
        };
        let most = 100 * BLOCK;
        assert_eq!(why(most + 1, most + 1), SendRefusal::TooLarge { bytes: most + 1, limit: most });
        assert!(matches!(why(most, most / 2), SendRefusal::TooLarge { .. }), "more than the buffer has");
        assert_eq!(parts[1].group.close(PATIENCE), Err(CloseFailure::NotRoot));
        let again = |members: &[NodeId], number| {
            let (told, _) = mpsc::channel();
            let keeper = Keeper { store: crowd.node(0).store().clone(), told, room: 0 };
            crowd.node(0).create(number, members, OPTIONS, keeper).expect_err("it is refused")
        };
        let both = [NodeId(0), NodeId(1)];
        assert!(matches!(again(&both, 0), CreateError::NumberUsed(0)));
        assert!(matches!(again(&[NodeId(0), NodeId(2)], 1), CreateError::Unknown(NodeId(2))));
        assert!(matches!(again(&[NodeId(1)], 2), CreateError::Open(_)));
        assert!(matches!(again(&both, 1024), CreateError::Open(_)));
        assert_eq!(parts[0].group.close(PATIENCE), Ok(Ended::Closed));
        assert_eq!(parts[1].group.wait(PATIENCE), Some(Ended::Closed));
    });
}

/// Panics at its first message.
struct Careless(Arc<Mutex<bool>>);

impl Recipient for Careless {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        *self.0.lock().expect("nobody panics with it") = true;
        panic!("careless")
    }

    fn completed(&mut self, _: u64, _: Buffer, _: usize) {}
}

#[test]
fn an_application_that_panics_ends_its_node_and_whoever_waits_is_told() {
    Crowd::each(2, |mut crowd| {
        let asked = Arc::new(Mutex::new(false));
        let both = [NodeId(0), NodeId(1)];
        let root = crowd.create(0, 4, &[0, 1], OPTIONS, 0);
        let careless = crowd.node(1).create(4, &both, OPTIONS, Careless(Arc::clone(&asked)));
        let careless = careless.expect("a group");
        root.group.send(crowd.filled(0, &[1; 10]), 10).expect("it is sent");
        let Some(Ended::Stopped(Stopped::Panicked(text))) = careless.wait(PATIENCE) else {
            panic!("{:?}", careless.ended())
        };
        assert!(text.contains("careless") && *asked.lock().expect("nobody holds it"));
        assert!(crowd.node(1).stopped().is_some());
        let late = crowd.node(1).create(5, &both, OPTIONS, Careless(asked));
        assert!(matches!(late, Err(CreateError::Stopped(Stopped::Panicked(_)))), "nobody answers: {late:?}");
        drop(crowd.nodes[1].take());
        let Some(Ended::Failed { node, .. }) = root.group.wait(PATIENCE) else {
            panic!("{:?}", root.group.ended())
        };
        assert_eq!(node, NodeId(1));
    });
}
