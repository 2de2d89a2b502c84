//! Large messages in the total order. Their blocks travel by block multicast, and one slot of the
//! ring describes each message (RDM-7).
//!
//! # The course of a large message
//! 1. A sender takes a slot, writes the length into it, and queues the bytes:
//!    [`Sender::send_large`].
//! 2. Each sender of a subgroup has a *stream* in a view: a block group of the subgroup's members,
//!    with the sender as its root. The sender's large messages go through the stream one at a time,
//!    in the order of their slots.
//! 3. At the other members, the core is informed of the number of messages that have completely
//!    arrived from a sender. A slot counts as received once its message is among these, so a stable
//!    message has all its bytes on all members.
//! 4. The message is delivered in order, like any other, from the buffer that received it. After
//!    that, the buffer is free.
//! 5. The sender keeps the bytes until all members have delivered the message. If a view ends
//!    without the message, the message is resent in the next view from its first block.
//!
//! # Invariants
//! - If a message does not match its slot, neither the message nor anything after it is delivered,
//!   and this member stops.
//! - When a view ends, its streams are stopped before the next view does anything. Blocks that
//!   arrive later do not count.
//! - No memory is allocated for a message once the pool has buffers of the right size.
//! - Memory is bounded: for each sender, a member has memory for a window of messages and one
//!   block, and a pool of the same size.
//!
//! | file | subject |
//! |---|---|
//! | `sending`, `send_queue` | the application's calls; the queue to the engine |
//! | `outbox`, `inbox` | this node's messages; a peer's |
//! | `sender_stream` | one sender's messages in one view |
//! | `pool` | buffers |
//! | `racks` | the order of members that are in racks |
//! | `options` | the settings of the group file |

pub(crate) mod failure;
pub(crate) mod inbox;
pub(crate) mod limits;
pub(crate) mod options;
pub(crate) mod outbox;
pub(crate) mod pool;
pub(crate) mod racks;
pub(crate) mod send_queue;
pub(crate) mod sender_stream;
pub(crate) mod sending;

use std::cell::Cell;
use std::sync::Arc;

use tramontane_core::fabric::BlockEvent;
use tramontane_core::fabric::Blocks as _;
use tramontane_core::ids::{Rank, SenderRank, SubgroupId};

use self::failure::LargeFailure;
use self::inbox::Inbox;
use self::limits::{POOL_MAX, describe};
use self::outbox::Outbox;
use self::pool::Pool;
use self::send_queue::LargeSendQueueReader;
use self::sender_stream::{SenderStream, StreamEnd};
use crate::block_transfer::buffer::Buffer;
use crate::block_transfer::options::GroupOptions;
use crate::block_transfer::transfer::{TransferSetup, TransferView};
use crate::fabric::{AnyBlockStore, AnyFabric};
use crate::group::description::layout::ViewLayout;
use crate::group::description::terms::Description;
use crate::group::engine::open_view::OpenView;

/// The maximum number of events handled per step.
const EVENTS_MAX: usize = 64;

/// The number of steps between checks of inactive streams while other messages keep the engine
/// busy.
const STEPS_PER_LOOK: u32 = 16;

/// A message that does not match its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DescriptorMismatch {
    subgroup: SubgroupId,
    rank: Rank,
    number: u64,
}

/// Returns the bytes of a message if they match its slot.
fn as_described<'b>(bytes: Option<&'b [u8]>, description: &[u8]) -> Option<&'b [u8]> {
    bytes.filter(|bytes| describe(bytes.len()) == description)
}

/// All large messages of a member.
pub(crate) struct Large {
    /// The outbox of each subgroup in which this node sends large messages.
    outboxes: Vec<(SubgroupId, Outbox)>,
    /// The streams of the current view. Empty once the view ends.
    streams: Vec<SenderStream>,
    table: Option<Arc<TransferView>>,
    pool: Pool,
    is_awake: bool,
    until_look: u32,
    /// A message whose slot and blocks do not match. Nothing after it is delivered.
    mismatch: Cell<Option<DescriptorMismatch>>,
}

impl Large {
    pub(crate) fn new(
        description: &Description,
        store: AnyBlockStore,
        large_queues: impl Iterator<Item = (SubgroupId, LargeSendQueueReader)>,
    ) -> Self {
        Self {
            outboxes: large_queues
                .map(|(subgroup, reader)| (subgroup, Outbox::new(reader)))
                .collect(),
            streams: Vec::new(),
            table: None,
            pool: Pool::new(store, POOL_MAX, description.large_pool_bytes()),
            is_awake: false,
            until_look: 0,
            mismatch: Cell::new(None),
        }
    }

    /// Begins a view: opens its streams. `ring_first` returns the first message of this node's ring
    /// in a subgroup.
    pub(crate) fn begin(
        &mut self,
        present: &OpenView,
        description: &Description,
        fabric: &AnyFabric,
        ring_first: impl Fn(SubgroupId) -> Option<u64>,
    ) -> Result<(), LargeFailure> {
        for (subgroup, outbox) in &mut self.outboxes {
            if let Some(first) = ring_first(*subgroup) {
                outbox.begin(first);
            }
        }
        let (layout, own) = (present.layout(), present.own());
        if layout.get().channels() == 0 {
            return Ok(());
        }
        let members = present.view().members.clone();
        let table = Arc::new(TransferView::new(present.view().id, own, members, present.memory()));
        for subgroup in (0..).map(SubgroupId).take(description.subgroups.len()) {
            self.open_lanes(subgroup, layout, &table, description, fabric)?;
        }
        self.table = Some(table);
        self.is_awake = true;
        Ok(())
    }

    fn open_lanes(
        &mut self,
        id: SubgroupId,
        layout: &ViewLayout,
        table: &Arc<TransferView>,
        description: &Description,
        fabric: &AnyFabric,
    ) -> Result<(), LargeFailure> {
        let said = |why: &dyn std::fmt::Display| format!("large messages cannot be sent: {why}");
        let Some(subgroup) = layout.get().subgroup(id) else { return Ok(()) };
        let Some(large) = description.large(id).filter(|_| subgroup.members.contains(&table.own))
        else {
            return Ok(());
        };
        for (sender, rank) in (0..).map(SenderRank).zip(subgroup.senders) {
            let channel = layout.get().large_channel(id, sender);
            let cells = channel.and_then(|channel| layout.get().channel_offset(channel));
            let (Some(channel), Some(cells)) = (channel, cells) else { continue };
            let end = if *rank == table.own {
                let Some(index) = self.outboxes.iter().position(|(of, _)| *of == id) else {
                    continue;
                };
                StreamEnd::Own(index)
            } else {
                let staging = self.pool.take(large.options.block_bytes);
                let staging = staging.map_err(|error| LargeFailure::Memory(said(&error)))?;
                StreamEnd::Of(Inbox::new(staging, large.window, large.whole_blocks_max()))
            };
            let (algorithm, ids) = (large.options.algorithm, layout.get().group().members);
            let (members, algorithm) =
                description.in_racks(algorithm, ids, *rank, subgroup.members);
            let staging = end.staging();
            let place = TransferSetup { channel, cells, members, staging };
            let options = GroupOptions { algorithm, ..large.options };
            let stream = SenderStream::open(table, (id, sender), place, &options, end, fabric);
            self.streams.push(stream.map_err(|error| LargeFailure::Fabric(said(&error)))?);
        }
        Ok(())
    }

    /// Returns whether a step is due now. `is_idle` is true if there is no other work.
    pub(crate) fn is_due(&mut self, is_idle: bool) -> bool {
        if self.streams.is_empty() {
            return false;
        }
        if self.is_awake || is_idle || self.until_look == 0 {
            self.until_look = STEPS_PER_LOOK;
            return true;
        }
        self.until_look -= 1;
        false
    }

    /// Handles arrivals, posts what is due, and informs the node of newly arrived messages. Returns
    /// whether anything was done.
    pub(crate) fn step(
        &mut self,
        present: &mut OpenView,
        fabric: &mut AnyFabric,
    ) -> Result<bool, LargeFailure> {
        let Some(table) = &self.table else { return Ok(false) };
        let own = table.own;
        let mut is_moving = false;
        let mut is_busy = self.receive_message();
        is_busy |= self.take_events(fabric);
        let Self { streams, outboxes, pool, .. } = self;
        for stream in streams {
            let stepped = stream.step(own, fabric, outboxes, pool);
            is_busy |= stepped.is_busy;
            is_moving |= stepped.is_moving;
            if let Some(arrived) = stepped.arrived {
                present.change(|node| {
                    node.large_arrived(stream.subgroup, stream.sender, arrived);
                });
            }
            if let Some(rank) = stepped.lost {
                present.change(|node| node.peer_lost(rank));
            }
            if let Some(rank) = stepped.denied_by {
                present.change(|node| node.denied_by(rank));
            }
            if let Some(failure) = stepped.failure {
                return Err(failure);
            }
        }
        self.is_awake = is_busy || is_moving;
        Ok(is_busy)
    }

    /// Fetches the messages that senders have queued.
    pub(crate) fn receive_message(&mut self) -> bool {
        self.outboxes
            .iter_mut()
            .fold(false, |has_heard, (_, outbox)| has_heard | outbox.receive_message())
    }

    fn take_events(&mut self, fabric: &mut AnyFabric) -> bool {
        let Self { streams, outboxes, pool, table, .. } = self;
        let mut is_busy = false;
        for _ in 0..EVENTS_MAX {
            let Some(event) = fabric.poll_block() else { break };
            is_busy = true;
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = event;
            if table.as_ref().is_some_and(|table| table.view == way.view)
                && let Some(stream) =
                    streams.iter_mut().find(|stream| stream.channel() == way.channel)
            {
                stream.take(&event, outboxes, pool);
            }
        }
        is_busy
    }

    /// Releases messages that have been delivered, at this member and everywhere. Called after a
    /// step. `exchange` receives the buffers of other members' messages, with their lengths, and
    /// may keep them.
    pub(crate) fn release(
        &mut self,
        present: &mut OpenView,
        mut exchange: impl FnMut(SubgroupId, Buffer, usize) -> Option<Buffer>,
    ) {
        for stream in &mut self.streams {
            match &mut stream.end {
                StreamEnd::Own(index) => {
                    if let Some((subgroup, outbox)) = self.outboxes.get_mut(*index)
                        && !outbox.is_empty()
                        && let Some(position) =
                            present.read(|node| node.node().own_delivered_everywhere(*subgroup))
                    {
                        outbox.delivered_everywhere(position.0);
                    }
                }
                StreamEnd::Of(inbox) if inbox.is_empty() => {}
                StreamEnd::Of(inbox) => {
                    let subgroup = stream.subgroup;
                    inbox.delivered(
                        present.read(|node| node.node().large_delivered(subgroup, stream.sender)),
                        &mut self.pool,
                        |buffer, bytes| exchange(subgroup, buffer, bytes),
                    );
                }
            }
        }
    }

    /// Returns the bytes of a large message that is being delivered: the sender's message `number`
    /// in this view, with the slot content `description`. Returns `None` if they do not match;
    /// [`Large::failure`] then returns the reason.
    pub(crate) fn payload(
        &self,
        subgroup: SubgroupId,
        rank: Rank,
        number: u64,
        description: &[u8],
    ) -> Option<&[u8]> {
        let stream =
            self.streams.iter().find(|stream| stream.subgroup == subgroup && stream.rank == rank);
        let bytes = stream.and_then(|stream| match &stream.end {
            StreamEnd::Own(index) => self.outboxes.get(*index)?.1.get(number),
            StreamEnd::Of(inbox) => inbox.get(number),
        });
        let described = as_described(bytes, description);
        if described.is_none() {
            self.mismatch.set(Some(DescriptorMismatch { subgroup, rank, number }));
        }
        described
    }

    /// Returns whether there are no large messages in the current view.
    #[inline]
    pub(crate) fn has_none(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns whether a message did not match its slot, so that nothing further is delivered.
    pub(crate) fn is_mistold(&self) -> bool {
        self.mismatch.get().is_some()
    }

    /// Returns the reason why nothing further is delivered, if there is one.
    pub(crate) fn failure(&self) -> Option<LargeFailure> {
        let DescriptorMismatch { subgroup, rank, number } = self.mismatch.get()?;
        let what = format!(
            "message {number} of the member with rank {rank}, in subgroup \
             {subgroup}"
        );
        Some(LargeFailure::DescriptorMismatch(what))
    }

    /// Stops the streams because the view ends: nothing that arrives later counts (RDM-7). Messages
    /// that have already arrived stay until [`Large::end`].
    pub(crate) fn stop(&mut self, fabric: &mut AnyFabric) {
        if let Some(table) = self.table.take() {
            for stream in &self.streams {
                fabric.close(table.view, stream.channel());
            }
        }
    }

    /// Ends the view. Messages that have not been delivered in it are resent, or given up.
    pub(crate) fn end(&mut self, fabric: &mut AnyFabric) {
        self.stop(fabric);
        for stream in self.streams.drain(..) {
            if let StreamEnd::Of(inbox) = stream.end {
                inbox.end(&mut self.pool);
            }
        }
    }

    /// Returns the bytes of a message that this node has not delivered by its end.
    pub(crate) fn take(&mut self, subgroup: SubgroupId, ordinal: u64) -> Option<Vec<u8>> {
        let (_, outbox) = self.outboxes.iter_mut().find(|(of, _)| *of == subgroup)?;
        outbox.take(ordinal)
    }

    /// Returns whether none of this node's messages is in flight.
    pub(crate) fn is_settled(&self) -> bool {
        self.outboxes.iter().all(|(_, outbox)| outbox.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::Stopped;

    #[test]
    fn large_message_must_match_its_slot_description() {
        let description = Description::local("mismatch", 2, 8, 16);
        let store = AnyBlockStore::Tcp(Default::default());
        let large = Large::new(&description, store, std::iter::empty());
        assert!(!large.is_mistold() && large.failure().is_none());
        // Not even an empty message is delivered, because there is no message.
        assert_eq!(large.payload(SubgroupId(0), Rank(1), 3, &describe(0)), None);
        assert!(large.is_mistold());
        let stopped = Stopped::from(large.failure().expect("it is known"));
        assert!(
            matches!(&stopped, Stopped::DescriptorMismatch(what) if what.starts_with("message 3 of")),
            "{stopped}"
        );
        assert_eq!(as_described(Some(b"four"), &describe(4)), Some(&b"four"[..]));
        assert_eq!(as_described(Some(b"four"), &describe(5)), None);
        assert_eq!(as_described(Some(b"four"), b"4"), None);
    }
}
