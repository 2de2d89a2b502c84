//! One peer's connection: its socket, both directions of traffic, and its end. A connection ends
//! only once, and for good. A peer that returns is a different process with a different connection.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use rustix::net::sockopt;
use tramontane_control::Cipher;
use tramontane_core::fabric::{
    Area, BlockEvent, Channel, ErrorKind, LossCause, Region, Token, ViewRows as _, Way,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::OutOfRow;

use super::blocks::{Closed, Full, Receive, SendingBlock};
use super::frame::Frame;
use super::incoming::Incoming;
use super::memory::Rows;
use super::notice::Notice;
use super::regions::{OwnRegions, PostedRead, Right};
use super::send_queue::{List, SendQueue, Sent};
use super::stream_end::StreamEnd;
use super::watch::Change;

/// The minimum interval between two of the kernel's own probes.
const PROBE_MIN: Duration = Duration::from_secs(1);

/// The maximum number of unanswered probes.
const PROBES: u32 = 3;

/// Settings of connections.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The time after which a peer counts as lost because its host acknowledges nothing, or because
    /// it takes nothing. Detecting the loss takes at least a few seconds.
    pub silence: Duration,
    /// The size of the kernel's buffer for each direction, in bytes. `None` lets the kernel choose
    /// the size and increase it. If a buffer holds less than two segments (128 KiB on the
    /// loopback), TCP itself waits for its timers: transferring 45 MB has been observed to take
    /// minutes.
    pub socket_bytes: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { silence: Duration::from_secs(30), socket_bytes: None }
    }
}

/// The maximum number of bytes that the kernel accepts beyond those on their way to another host.
/// Without a limit, it accepts megabytes, for which a heartbeat waits seconds on a slow link.
const UNSENT_BYTES_MAX: libc::c_int = 256 << 10;

/// The connection to one peer.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: NodeId,
    /// `None` once the connection has ended.
    stream: Option<TcpStream>,
    cipher: Option<Cipher>,
    send_queue: SendQueue,
    incoming: Incoming,
    readable: bool,
    writable: bool,
    hung_up: bool,
    /// Whether nothing more can be written. The reading side finds out why, because the peer's last
    /// frames may still be unread.
    is_broken: bool,
    /// Whether the kernel has given up on writes. It reports that once, and afterwards only the end
    /// of the stream.
    is_unreachable: bool,
    loss: Option<LossCause>,
    /// Whether the peer has left all views.
    is_parted: bool,
    /// Whether the peer has been informed of the local regions.
    has_told_regions: bool,
    /// Whether the loss has not been reported yet.
    pub(super) is_untold: bool,
}

impl Connection {
    pub(super) fn new(
        peer: NodeId,
        connection: tramontane_control::Connection,
        settings: &Settings,
    ) -> io::Result<Self> {
        let tramontane_control::Connection { stream, cipher } = connection;
        set(&stream, settings)?;
        let is_keyed = cipher.is_some();
        Ok(Self {
            peer,
            stream: Some(stream),
            cipher,
            send_queue: SendQueue::new(is_keyed),
            incoming: Incoming::new(is_keyed),
            // The kernel does not report readiness that predates the watch on the socket as a
            // change.
            readable: true,
            writable: true,
            hung_up: false,
            is_broken: false,
            is_unreachable: false,
            loss: None,
            is_parted: false,
            has_told_regions: false,
            is_untold: false,
        })
    }

    pub(super) fn stream(&self) -> Option<&TcpStream> {
        self.stream.as_ref()
    }

    pub(super) const fn is_live(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns whether the connection's process is, or may become, a member.
    pub(super) const fn is_used(&self) -> bool {
        self.is_live() && !self.is_parted
    }

    /// Notes that the connection's process has left all views. Another process may replace it.
    pub(super) const fn part(&mut self) {
        self.is_parted = true;
    }

    /// Returns whether the connection is no longer needed, provided that no view leads to it.
    pub(super) const fn is_over(&self) -> bool {
        !self.is_live() && (self.is_parted || !self.is_untold)
    }

    /// Returns whether a view that is opened now has lost its process, either because the view
    /// continues an earlier view with that process, or because it is the first to report the loss.
    pub(super) const fn is_lost_in(&self, goes_on: bool) -> bool {
        !self.is_parted && (goes_on || self.is_untold)
    }

    pub(super) const fn loss(&self) -> Option<LossCause> {
        self.loss
    }

    pub(super) fn is_ready(&self, view: ViewId) -> bool {
        self.is_live() && self.incoming.landings.is_ready(view)
    }

    /// Notes a change reported by the kernel.
    pub(super) fn note(&mut self, change: Change) {
        if let Change::Socket { readable, writable, hung_up, .. } = change {
            self.readable |= readable;
            self.writable |= writable;
            self.hung_up |= hung_up;
        }
    }

    /// Returns whether anything is waiting to be sent.
    pub(super) fn is_pending(&self) -> bool {
        self.is_live() && self.send_queue.is_pending()
    }

    /// Returns whether a list is waiting, so that there is no room for another.
    pub(super) fn is_full(&self) -> bool {
        self.is_live() && self.send_queue.is_full()
    }

    /// Returns whether anything is waiting that the socket may accept now.
    pub(super) fn is_sendable(&self) -> bool {
        self.is_pending() && self.writable && !self.is_broken
    }

    /// Returns whether a read may find something.
    pub(super) const fn is_readable(&self) -> bool {
        self.is_live() && self.readable
    }

    /// Returns whether the peer has ended a view that is open here.
    pub(super) fn is_over_there(&self, view: ViewId) -> bool {
        self.incoming.landings.is_over_there(view)
    }

    /// Informs the peer of the local regions before the first view.
    fn tell_regions(&mut self, own: &OwnRegions) {
        if !std::mem::replace(&mut self.has_told_regions, true) {
            self.incoming.regions.own = own.clone();
            for frame in self.incoming.regions.told() {
                self.send_queue.push_frame(frame);
            }
        }
    }

    /// Opens a view at this end, in which some channels may already have been closed, and informs
    /// the peer. Returns true if the peer is ready.
    pub(super) fn open(
        &mut self,
        view: ViewId,
        (rows, regions): (&Rows, &OwnRegions),
        closed: Closed,
        peer: Rank,
    ) -> bool {
        if !self.is_live() {
            return false;
        }
        self.tell_regions(regions);
        self.incoming.block_receiving.open(view, closed);
        let row_bytes = u64::try_from(rows.row().bytes()).unwrap_or(u64::MAX);
        self.send_queue.push_frame(Frame::Open { view, row_bytes, digest: rows.digest() });
        match self.incoming.landings.open(view, rows, peer) {
            Ok(is_ready) => is_ready,
            Err(end) => {
                self.end(&end);
                false
            }
        }
    }

    /// Ends a view, whose memory is neither read nor written to from then on. The peer is informed
    /// after the traffic that has already been accepted.
    pub(super) fn retire(&mut self, view: ViewId, rows: &Rows) {
        let was_open = self.incoming.retire(view);
        self.send_queue.keep(rows);
        self.send_queue.block_sending.retire(view);
        if was_open && self.is_live() {
            self.send_queue.push_frame(Frame::Close { view });
        }
    }

    /// Grants the peer a right to write to a local region. The caller must flush.
    pub(super) fn grant(&mut self, view: ViewId, region: Region, right: Right) {
        self.incoming.regions.give(view, region, right);
        self.send_queue.push_frame(Frame::Right { view, region, right: right.get() });
    }

    /// Revokes a right, and informs the peer after the results of the lists accepted under that
    /// right. The caller must flush.
    pub(super) fn revoke(&mut self, view: ViewId, region: Region) {
        if self.incoming.take_back(view, region) {
            self.send_queue.push_frame(Frame::Right { view, region, right: 0 });
        }
    }

    pub(super) fn may_write(&self, view: ViewId, region: Region) -> bool {
        self.incoming.regions.given(view, region).is_some()
    }

    /// Returns whether an area is inside a region of the peer.
    pub(super) fn has_area(&self, area: Area, length: usize) -> bool {
        self.incoming.regions.has_area(area, length)
    }

    /// Returns whether this member may write to a region of the peer.
    pub(super) fn has_right(&self, view: ViewId, region: Region) -> bool {
        self.incoming.regions.held(view, region).is_some()
    }

    /// Returns whether a list may be posted that the peer has to confirm.
    pub(super) fn has_list_room(&self) -> bool {
        self.incoming.regions.unconfirmed.has_room()
    }

    /// Requests bytes of a region, starting at an offset. The caller must flush.
    pub(super) fn ask(&mut self, read: PostedRead, offset: u64) -> Result<(), ErrorKind> {
        if self.is_broken {
            // The next poll reports the reason.
            return Ok(());
        }
        let PostedRead { view, region, left, .. } = read;
        let length = u32::try_from(left).map_err(|_| ErrorKind::OutOfRange)?;
        self.incoming.regions.note_read(read)?;
        self.incoming.landings.note_post(view);
        self.send_queue.push_frame(Frame::Read { view, region, offset, length });
        Ok(())
    }

    /// Ends a channel. The memory of its blocks is neither read nor written to from then on.
    pub(super) fn close_channel(&mut self, view: ViewId, channel: Channel) {
        self.incoming.close(view, channel);
        self.send_queue.block_sending.close(view, channel);
    }

    /// Queues a block. The caller must flush.
    pub(super) fn send(&mut self, way: Way, block: SendingBlock) -> Result<(), Full> {
        if self.is_broken {
            // The next poll reports the reason.
            return Ok(());
        }
        self.incoming.landings.note_post(way.view);
        self.send_queue.block_sending.add(way, block)
    }

    /// Adds a receive.
    pub(super) fn receive(&mut self, receive: Receive) -> Result<(), Full> {
        self.incoming.block_receiving.add(receive)
    }

    /// Queues a list for rows, or for the given region. The peer confirms every list with a token,
    /// and every list for a region. The caller has checked that there is room, and must flush.
    pub(super) fn post(
        &mut self,
        list: &List<'_>,
        region: Region,
        token: Option<Token>,
    ) -> Result<(), OutOfRow> {
        if self.is_broken {
            // The next poll reports the reason.
            return Ok(());
        }
        let view = list.view;
        self.incoming.landings.note_post(view);
        let regions = &mut self.incoming.regions;
        let right = regions.held(view, region).map_or(0, Right::get);
        let is_confirmed = token.is_some() || region != Region::ROW;
        if is_confirmed {
            let writes = u32::try_from(list.writes.len()).map_err(|_| OutOfRow)?;
            self.send_queue.push_frame(Frame::List { view, region, writes, right });
            regions.note_list(view, region, token);
        }
        self.send_queue.add(list, is_confirmed)
    }

    /// Lets a list for rows overtake the content that waits, if it may. Returns whether it does.
    pub(super) fn overtake(&mut self, list: &List<'_>) -> Result<bool, OutOfRow> {
        self.send_queue.overtake(list)
    }

    /// Holds back the lists that are waiting, so that they are sent together with the caller's next
    /// list, or with the next poll. Returns false if the caller must flush.
    pub(super) fn hold_back(&mut self) -> bool {
        self.writable && !self.is_broken && self.send_queue.hold_back()
    }

    pub(super) fn wake(&mut self) {
        self.send_queue.owe_wake();
    }

    /// Sends as much as the socket accepts, within limits.
    pub(super) fn flush(&mut self, gone: impl FnMut(Sent)) {
        let Some(stream) = &self.stream else { return };
        if !self.writable || self.is_broken {
            return;
        }
        match self.send_queue.flush(stream, self.cipher.as_mut(), gone) {
            Ok(has_room) => self.writable = has_room,
            Err(error) => {
                // The peer's last frames are still unread. One of them may say that it is leaving.
                tracing::debug!(peer = %self.peer, %error, "nothing more can be sent");
                self.send_queue.clear();
                (self.is_broken, self.readable, self.hung_up) = (true, true, true);
                self.is_unreachable = !is_ended(error.kind());
            }
        }
    }

    /// Reads and stores received bytes, within limits.
    pub(super) fn read(&mut self, mut notify: impl FnMut(Notice)) {
        let Self { stream: Some(stream), incoming, send_queue, .. } = self else { return };
        let (mut last, mut failure) = (None, None);
        let read = incoming.read(stream, self.cipher.as_mut(), self.hung_up, |said| match said {
            Notice::Left => last = last.or(Some(LossCause::Left)),
            Notice::Denied => last = last.or(Some(LossCause::Denied)),
            Notice::Ended(view) => {
                let sent = |way, token| notify(Notice::Block(BlockEvent::Sent { way, token }));
                send_queue.block_sending.pass_over(view, sent);
                failure = failure.take().or(send_queue.answer(Frame::Closed { view }).err());
            }
            Notice::Asked(read) => failure = failure.take().or(send_queue.asked.add(read).err()),
            Notice::Ready(..)
            | Notice::Rung
            | Notice::Block(_)
            | Notice::Completed(_)
            | Notice::Permission(_) => notify(said),
        });
        if let Some(lists) = incoming.regions.coming.news() {
            send_queue.owe_taken(lists);
        }
        match (last, failure.map_or(read, Err)) {
            (Some(cause), _) => self.lose(cause),
            (None, Ok(more)) => self.readable = more,
            (None, Err(end)) => self.end(&end),
        }
    }

    fn end(&mut self, end: &StreamEnd) {
        let cause = match end {
            StreamEnd::Closed if self.is_unreachable => LossCause::Unreachable,
            StreamEnd::Closed => LossCause::Exited,
            StreamEnd::Malformed(what) => {
                tracing::warn!(peer = %self.peer, what, "a peer sent what no member sends");
                LossCause::Misbehaved
            }
            StreamEnd::Broken(error) => {
                tracing::debug!(peer = %self.peer, %error, "a connection broke");
                if is_ended(error.kind()) { LossCause::Exited } else { LossCause::Unreachable }
            }
        };
        self.lose(cause);
    }

    fn lose(&mut self, cause: LossCause) {
        self.close();
        self.loss = Some(cause);
        self.is_untold = true;
    }

    /// Cuts off the peer, and informs it if it is reading.
    pub(super) fn cut(&mut self) {
        self.farewell(Frame::Cut);
        self.close();
        self.is_untold = false;
    }

    /// Sends a last frame if the socket accepts it now. A peer that takes nothing is not informed.
    pub(super) fn farewell(&mut self, word: Frame) {
        if self.stream.is_none() {
            return;
        }
        // Blocks that have not begun are not sent.
        self.send_queue.block_sending.give_up();
        self.send_queue.asked.clear();
        while self.is_sendable() {
            self.flush(|_| {});
        }
        if !self.send_queue.is_pending() && !self.is_broken {
            self.send_queue.push_frame(word);
            self.flush(|_| {});
        }
        if let Some(stream) = &self.stream {
            // Fails if the peer closed the connection first.
            let _ = stream.shutdown(Shutdown::Write);
        }
        self.is_broken = true;
        self.send_queue.clear();
    }

    fn close(&mut self) {
        self.stream = None;
        self.send_queue.clear();
        self.incoming.clear();
    }
}

/// Returns whether an error means that the other end has gone away, rather than being silent.
fn is_ended(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

/// Configures a connection, so that the kernel never delays data to fill a segment, and notices a
/// dead host.
fn set(stream: &TcpStream, settings: &Settings) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    if stream.peer_addr().is_ok_and(|address| address.ip().is_loopback()) {
        // Nothing is congested between two processes of one machine, and an algorithm that paces,
        // such as BBR, costs a timer for each part of what is sent. Every Linux has this one; if it
        // is refused, the connection is merely slower.
        let _ = sockopt::set_tcp_congestion(stream, "reno");
    } else {
        limit_unsent(stream)?;
    }
    if let Some(bytes) = settings.socket_bytes {
        sockopt::set_socket_send_buffer_size(stream, bytes)?;
        sockopt::set_socket_recv_buffer_size(stream, bytes)?;
    }
    let silence = settings.silence.max(PROBE_MIN * PROBES);
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, silence / PROBES)?;
    sockopt::set_tcp_keepintvl(stream, silence / PROBES)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    sockopt::set_tcp_user_timeout(stream, u32::try_from(silence.as_millis()).unwrap_or(u32::MAX))?;
    Ok(())
}

/// Limits the bytes that the kernel accepts before it can send them.
fn limit_unsent(stream: &TcpStream) -> io::Result<()> {
    let bytes = UNSENT_BYTES_MAX;
    let value = (&raw const bytes).cast();
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
    // SAFETY: The descriptor is open, and the value is an integer of that length. `rustix` does not
    // have this option.
    match unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, value, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
