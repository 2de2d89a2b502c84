//! Blocks to one peer: cut into pieces, each a frame, in turn by channel.
//!
//! At most one piece is in flight at a time. It begins when nothing else waits to be sent, so a
//! write waits for at most one piece, and channels take turns on the connection.

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_control::RECORD_CONTENT_MAX;
use tramontane_core::fabric::{Channel, Token, Way};
use tramontane_core::ids::ViewId;

use super::super::frame::{Frame, FrameBytes, HEADER};
use super::channels::ChannelTable;
use super::memory::BlockBytes;

/// Largest number of blocks in flight to one peer on one channel.
pub(super) const SENDS_MAX: usize = 16;

/// Largest number of bytes in a piece.
const PIECE_MAX: usize = 256 << 10;

/// Largest number of bytes in an encrypted piece: whole records.
const SEALED_PIECE_MAX: usize = 4 * RECORD_CONTENT_MAX;

/// There is no room for another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A block, or the rest of one.
#[derive(Debug)]
pub(crate) struct SendingBlock {
    pub(super) memory: Arc<BlockBytes>,
    pub(super) offset: usize,
    pub(super) left: usize,
    pub(super) immediate: u32,
    pub(super) token: Token,
}

/// The source of a piece's bytes.
#[derive(Debug)]
enum PieceSource {
    Lent {
        memory: Arc<BlockBytes>,
        offset: usize,
    },
    /// A copy of the rest of a piece whose channel was closed.
    Kept {
        bytes: Box<[u8]>,
        from: usize,
    },
}

/// The piece in flight.
#[derive(Debug)]
struct PieceInFlight {
    way: Way,
    header: FrameBytes,
    /// Bytes of the header already sent.
    gone: usize,
    source: PieceSource,
    /// Bytes not sent yet.
    left: usize,
    /// The block's token, if the block ends here.
    token: Option<Token>,
}

impl PieceInFlight {
    fn rest(&self) -> Option<[&[u8]; 2]> {
        let body = match &self.source {
            PieceSource::Lent { memory, offset } => memory.content(*offset, self.left).ok()?,
            PieceSource::Kept { bytes, from } => bytes.get(*from..)?,
        };
        Some([self.header.get(self.gone..HEADER)?, body])
    }

    fn pass(&mut self, count: usize) {
        let of_header = count.min(HEADER - self.gone);
        let of_body = count - of_header;
        self.gone += of_header;
        self.left -= of_body;
        let (PieceSource::Lent { offset: at, .. } | PieceSource::Kept { from: at, .. }) =
            &mut self.source;
        *at += of_body;
    }

    /// Copies the rest, because the memory may change from now on.
    fn keep(&mut self) {
        self.token = None;
        if let PieceSource::Lent { memory, offset } = &self.source {
            // The range is valid, because it was when the block was posted.
            let bytes = memory.content(*offset, self.left).map(Box::from).unwrap_or_default();
            self.source = PieceSource::Kept { bytes, from: 0 };
        }
    }
}

/// All blocks to one peer.
#[derive(Debug)]
pub(crate) struct BlockSending {
    channels: ChannelTable<VecDeque<SendingBlock>>,
    /// Channels with a piece to begin, each once.
    turns: VecDeque<Way>,
    piece: Option<PieceInFlight>,
    piece_max: usize,
}

impl BlockSending {
    pub(crate) fn new(is_keyed: bool) -> Self {
        let piece_max = if is_keyed { SEALED_PIECE_MAX } else { PIECE_MAX };
        Self { channels: ChannelTable::default(), turns: VecDeque::new(), piece: None, piece_max }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.piece.is_some() || !self.turns.is_empty()
    }

    /// Adds a block whose range was checked.
    pub(crate) fn add(&mut self, way: Way, block: SendingBlock) -> Result<(), Full> {
        let Self { channels, turns, .. } = self;
        let channel_state =
            channels.get_or_make(way.view, way.channel, || VecDeque::with_capacity(SENDS_MAX));
        if channel_state.len() == SENDS_MAX {
            return Err(Full);
        }
        if channel_state.is_empty() {
            turns.push_back(way);
        }
        channel_state.push_back(block);
        Ok(())
    }

    /// Begins the next piece if none is in flight.
    pub(crate) fn begin(&mut self) {
        if self.piece.is_some() {
            return;
        }
        let Some(way) = self.turns.pop_front() else { return };
        let Some(channel_state) = self.channels.get(way.view, way.channel) else { return };
        let Some(block) = channel_state.front_mut() else { return };
        let length = block.left.min(self.piece_max);
        // Both fit, because a block is no longer than the fabric's limit.
        let bits = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let header = Frame::Block {
            view: way.view,
            channel: way.channel,
            length: bits(length),
            left: bits(block.left),
            immediate: block.immediate,
        };
        let is_last = length == block.left;
        self.piece = Some(PieceInFlight {
            way,
            header: header.encode(),
            gone: 0,
            source: PieceSource::Lent { memory: Arc::clone(&block.memory), offset: block.offset },
            left: length,
            token: is_last.then_some(block.token),
        });
        block.offset += length;
        block.left -= length;
        if is_last {
            channel_state.pop_front();
        }
        if !channel_state.is_empty() {
            self.turns.push_back(way);
        }
    }

    /// Returns the unsent parts of the piece in flight: of its header, and of its bytes.
    pub(crate) fn rest(&self) -> Option<[&[u8]; 2]> {
        match &self.piece {
            Some(piece) => piece.rest(),
            None => Some([&[], &[]]),
        }
    }

    /// Forgets the first `count` bytes. Returns how many of them were after the piece in flight, or
    /// `None` if that is not complete.
    pub(crate) fn take(&mut self, count: usize, sent: impl FnOnce(Way, Token)) -> Option<usize> {
        let Some(piece) = &mut self.piece else { return Some(count) };
        let part = count.min(HEADER - piece.gone + piece.left);
        piece.pass(part);
        if piece.gone < HEADER || piece.left > 0 {
            return None;
        }
        if let Some(token) = piece.token {
            sent(piece.way, token);
        }
        self.piece = None;
        Some(count - part)
    }

    /// Ends a channel: a piece that has begun continues from a copy, and the rest is never sent.
    /// The receiver takes no more of that channel, and is notified only of blocks that it has
    /// completely.
    pub(crate) fn close(&mut self, view: ViewId, channel: Channel) {
        self.channels.close(view, channel);
        self.end(|way| way.view == view && way.channel == channel);
    }

    /// Ends all channels of a view.
    pub(crate) fn retire(&mut self, view: ViewId) {
        self.channels.retire(view);
        self.end(|way| way.view == view);
    }

    /// Notes that the peer has ended a view. Its blocks would be dropped there, and count as sent.
    pub(crate) fn pass_over(&mut self, view: ViewId, mut sent: impl FnMut(Way, Token)) {
        for way in self.turns.iter().filter(|way| way.view == view) {
            let blocks = self.channels.get(view, way.channel).map(std::mem::take);
            blocks.into_iter().flatten().for_each(|block| sent(*way, block.token));
        }
        self.turns.retain(|way| way.view != view);
    }

    /// Ends all channels.
    pub(crate) fn give_up(&mut self) {
        self.channels.clear();
        self.end(|_| true);
    }

    fn end(&mut self, is_ended: impl Fn(&Way) -> bool) {
        self.turns.retain(|way| !is_ended(way));
        if let Some(piece) = self.piece.as_mut().filter(|piece| is_ended(&piece.way)) {
            if piece.gone == 0 {
                self.piece = None;
            } else {
                piece.keep();
            }
        }
    }

    /// Forgets everything, because the peer is gone.
    pub(crate) fn clear(&mut self) {
        self.channels.clear();
        self.turns.clear();
        self.piece = None;
    }
}
