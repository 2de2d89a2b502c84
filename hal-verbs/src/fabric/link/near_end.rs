//! The local end of a connection: its queue pair, and the memory from which it reads.
//!
//! One thread at a time owns the end: a worker while it is created, brought up or destroyed, and
//! the polling thread in between.

use std::io;
use std::sync::Arc;

use super::memory::{FarRing, OtherMemory};
use super::message_places::receive_range;
use super::updates::Updates;
use super::{FarEnd, GUARD_BYTES_MAX, Purpose};
use crate::adapter::{Access, MemoryRegion, QueuePair, Route, SendTimes};
use crate::protocol::{CardLink, LentMemory, Name};

/// The step by which a reset advances the first packet number, so that old packets are not mistaken
/// for new ones.
const EPOCH_STRIDE: u32 = 0x10_0001;
const PACKET_MASK: u32 = 0x00ff_ffff;

/// Maximum number of attempts to bring up a connection. A packet that arrives before the reset but
/// is processed after it breaks the connection that is being brought up. On a software device, this
/// happens about once in fifty times.
const TRIES: u32 = 5;

/// Memory to which guards and messages that are not sent inline are copied: a part of the memory
/// that all connections of a domain share.
#[derive(Debug)]
pub(crate) struct Staging {
    pub(crate) memory: Arc<MemoryRegion>,
    /// The offset of this connection's part.
    pub(crate) offset: usize,
}

impl Staging {
    /// Returns the offset for a request's bytes, by the request's slot.
    pub(super) const fn place(&self, slot: usize) -> usize {
        self.offset + slot * GUARD_BYTES_MAX
    }
}

/// The local end of a connection.
#[derive(Debug)]
pub(crate) struct NearEnd {
    pub(super) queue_pair: QueuePair,
    index: u16,
    purpose: Purpose,
    times: SendTimes,
    /// The description of this end for the peer.
    pub(crate) card: CardLink,
    /// The rings in this member's copies to which the peer passes on messages.
    pub(crate) lent_rings: Vec<LentMemory>,
    pub(super) far: Option<FarEnd>,
    /// The peer's rings to which this member passes on messages.
    pub(super) rings: Vec<FarRing>,
    /// The key for writes: that of the remote memory, or one that its owner granted.
    pub(super) write_key: u32,
    pub(super) source: Arc<MemoryRegion>,
    /// Number of bytes of local memory that may be written from and read into.
    pub(super) own_bytes: usize,
    pub(super) others: Arc<[OtherMemory]>,
    /// The offset of this connection's messages in that memory, on a connection for blocks.
    pub(super) messages: usize,
    pub(super) staging: Option<Staging>,
    /// Present only if devices keep no order between writes.
    pub(super) updates: Option<Updates>,
    pub(super) inline_bytes_max: usize,
}

/// The components from which the local end of a new connection is built.
pub(crate) struct NearParts {
    pub(crate) queue_pair: QueuePair,
    pub(crate) index: u16,
    pub(crate) purpose: Purpose,
    pub(crate) times: SendTimes,
    pub(crate) card: CardLink,
    pub(crate) source: Arc<MemoryRegion>,
    /// Number of bytes that may be written from and read into.
    pub(crate) own_bytes: usize,
    pub(crate) others: Arc<[OtherMemory]>,
    /// The offset of this connection's messages in that memory, on a connection for blocks.
    pub(crate) messages: usize,
    /// Maximum number of bytes to send inline, limited by what the queue pair supports.
    pub(crate) inline_bytes_max: u32,
}

impl NearEnd {
    pub(crate) fn new(parts: NearParts) -> Self {
        let NearParts {
            queue_pair,
            index,
            purpose,
            times,
            card,
            source,
            own_bytes,
            others,
            messages,
            inline_bytes_max,
        } = parts;
        let inline = inline_bytes_max.min(queue_pair.inline_bytes_max());
        let inline_bytes_max = usize::try_from(inline).unwrap_or(0);
        Self {
            queue_pair,
            index,
            purpose,
            times,
            card,
            lent_rings: Vec::new(),
            far: None,
            rings: Vec::new(),
            write_key: 0,
            source,
            own_bytes,
            others,
            messages,
            staging: None,
            updates: None,
            inline_bytes_max,
        }
    }

    /// Returns whether this end needs memory for bytes that are not sent inline. Without that
    /// memory, such posts are refused.
    pub(crate) fn needs_staging(&self, bytes_max: usize) -> bool {
        self.inline_bytes_max < bytes_max
    }

    /// Sets the memory for bytes that are not sent inline.
    pub(crate) fn stage_in(&mut self, staging: Staging) {
        self.staging = Some(staging);
    }

    /// Makes the connection send lists as updates.
    pub(crate) fn update_with(&mut self, updates: Updates) {
        self.updates = Some(updates);
    }

    /// Returns the maximum number of bytes that the queue pair sends inline.
    pub(crate) fn granted_inline_bytes(&self) -> u32 {
        self.queue_pair.inline_bytes_max()
    }

    /// Lends rings to the peer, which passes on messages to them.
    pub(crate) fn lend_rings(&mut self, rings: Vec<LentMemory>) {
        self.lent_rings = rings;
    }

    /// Sets the rings of the peer to which this member passes on messages.
    pub(crate) fn pass_on_to(&mut self, rings: Vec<FarRing>) {
        self.rings = rings;
    }

    /// Limits the reads in flight to the number that the other end serves.
    pub(crate) fn limit_reads(&mut self, most: u8) {
        self.times.reads_max = self.times.reads_max.min(most);
    }

    /// Returns whether the connection has been brought up. If so, the peer may know that, and may
    /// write.
    pub(crate) const fn is_up(&self) -> bool {
        self.far.is_some()
    }

    /// Brings the connection up from reset, in its first or a later epoch: both ends must use the
    /// same epoch.
    pub(crate) fn connect(
        &mut self,
        far: FarEnd,
        access: Access,
        receives: u64,
        epoch: u32,
    ) -> io::Result<()> {
        let shift = epoch.wrapping_mul(EPOCH_STRIDE);
        let route = Route {
            remote_packet: far.route.remote_packet.wrapping_add(shift) & PACKET_MASK,
            ..far.route
        };
        let times = SendTimes {
            first_packet: self.times.first_packet.wrapping_add(shift) & PACKET_MASK,
            ..self.times
        };
        self.queue_pair.initialise(route.port, route.partition_index, access)?;
        for number in 0..receives {
            self.repost(Name::receive(self.index, number))?;
        }
        self.queue_pair.connect(&route)?;
        self.queue_pair.start(&times)?;
        self.far = Some(far);
        self.write_key = far.target.key;
        Ok(())
    }

    /// Brings the connection up again with the same remote end. Supports only connections without
    /// receives, because after a reset, some devices keep the old receives and others do not.
    pub(super) fn reconnect(&mut self, access: Access, epoch: u32) -> io::Result<()> {
        let far = self.far.ok_or(io::ErrorKind::NotConnected)?;
        let mut tries = TRIES;
        loop {
            self.reset()?;
            match self.connect(far, access, 0, epoch) {
                Err(_) if tries > 1 => tries -= 1,
                result => return result,
            }
        }
    }

    /// Ends all traffic in both directions immediately: nothing more lands here, and nothing more
    /// is read.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        if let Some(updates) = &mut self.updates {
            updates.forget();
        }
        self.queue_pair.reset()
    }

    /// Posts a receive for a notice or a message, for the first time or again.
    pub(super) fn repost(&mut self, name: Name) -> io::Result<()> {
        let range = match &self.updates {
            None => (self.purpose == Purpose::Blocks)
                .then(|| receive_range(&self.source, self.messages, name)),
            Some(updates) => Some(updates.landing_place(name)),
        };
        self.queue_pair.post_receive(name.raw(), range)
    }
}
