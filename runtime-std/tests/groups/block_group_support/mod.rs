//! Nodes that are threads of this process, over each fabric, and the events received by their
//! groups' recipients.

use std::sync::mpsc::{self, Receiver, Sender};

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;
use tramontane_runtime::blocks::{
    AnyBlockStore, BlockNode, Buffer, Ended, Group, GroupOptions, Recipient,
};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;

use crate::fixed_support::Meeting;
pub use crate::group_support::PATIENCE;
use crate::group_support::carriers;

pub const BLOCK: usize = 1000;

pub const OPTIONS: GroupOptions = GroupOptions {
    algorithm: Algorithm::Pipeline,
    block_bytes: BLOCK,
    message_max: 100 * BLOCK,
    window: Window { receives: 2, sends: 2 },
};

/// An event received by a recipient.
#[derive(Debug)]
pub enum RecipientEvent {
    Completed(u64, Vec<u8>),
    Ended(Ended),
}

/// Records a recipient's events. `room` is the size of the largest message for which it has memory.
pub struct Keeper {
    pub store: AnyBlockStore,
    pub told: Sender<RecipientEvent>,
    pub room: usize,
}

impl Recipient for Keeper {
    fn incoming(&mut self, _: u64, bytes: usize) -> Option<Buffer> {
        if bytes > self.room {
            return None;
        }
        Buffer::new(&self.store, bytes).ok()
    }

    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize) {
        let _ = self.told.send(RecipientEvent::Completed(message, buffer[..bytes].to_vec()));
    }

    fn ended(&mut self, ended: &Ended) {
        let _ = self.told.send(RecipientEvent::Ended(ended.clone()));
    }
}

/// Nodes that have met.
pub struct Crowd {
    pub nodes: Vec<Option<BlockNode>>,
    _meeting: Meeting,
}

impl Crowd {
    /// Runs a test with `count` nodes over each fabric, over all fabrics at the same time.
    pub fn each(count: u32, test: impl Fn(Crowd) + Sync) {
        let test = &test;
        std::thread::scope(|scope| {
            for carrier in carriers() {
                scope.spawn(move || test(Self::meet(carrier, count)));
            }
        });
    }

    fn meet(carrier: Carrier, count: u32) -> Self {
        Self::of(Meeting::new(carrier, count), count, count)
    }

    /// Starts the first nodes of a meeting. The other nodes are separate processes.
    pub fn of(meeting: Meeting, here: u32, count: u32) -> Self {
        let nodes = Description::builder("blocks").nodes(count);
        let nodes = meeting.run(nodes, here, |_, description, options| {
            Some(BlockNode::start(description, options).expect("all come"))
        });
        Self { nodes, _meeting: meeting }
    }

    /// Starts only one node of a meeting in this process, as the crowd's first node.
    pub fn of_one(meeting: Meeting, node: u32, count: u32) -> Self {
        let description = meeting.describe(Description::builder("blocks").nodes(count));
        let node = BlockNode::start(description, meeting.options(node)).expect("all come");
        Self { nodes: vec![Some(node)], _meeting: meeting }
    }

    pub fn node(&self, id: u32) -> &BlockNode {
        self.nodes[id as usize].as_ref().expect("it is there")
    }

    /// Creates a group at one of its members.
    pub fn create(
        &self,
        id: u32,
        number: u64,
        members: &[u32],
        options: GroupOptions,
        room: usize,
    ) -> Part {
        let members: Vec<NodeId> = members.iter().copied().map(NodeId).collect();
        let (told, heard) = mpsc::channel();
        let keeper = Keeper { store: self.node(id).store().clone(), told, room };
        let group = self.node(id).create(number, &members, options, keeper).expect("a group");
        Part { group, heard }
    }

    /// Creates a group at all of its members.
    pub fn create_all(&self, number: u64, members: &[u32], options: GroupOptions) -> Vec<Part> {
        members.iter().map(|id| self.create(*id, number, members, options, usize::MAX)).collect()
    }

    pub fn filled(&self, id: u32, bytes: &[u8]) -> Buffer {
        let mut buffer = self.node(id).buffer(bytes.len()).expect("memory");
        buffer[..bytes.len()].copy_from_slice(bytes);
        buffer
    }
}

pub struct Part {
    pub group: Group,
    heard: Receiver<RecipientEvent>,
}

impl Part {
    #[track_caller]
    pub fn next(&self) -> RecipientEvent {
        self.heard.recv_timeout(PATIENCE).expect("it is told")
    }

    #[track_caller]
    pub fn expect_message(&self, number: u64, bytes: &[u8]) {
        match self.next() {
            RecipientEvent::Completed(seen, content) => {
                assert!(seen == number && content == bytes, "message {number}")
            }
            RecipientEvent::Ended(ended) => panic!("message {number} does not come: {ended}"),
        }
    }

    #[track_caller]
    pub fn expect_end(&self) -> Ended {
        loop {
            if let RecipientEvent::Ended(ended) = self.next() {
                return ended;
            }
        }
    }
}

/// Returns bytes that are different for every message.
pub fn content(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| (place.wrapping_mul(2_654_435_761 + number) >> 7) as u8).collect()
}
