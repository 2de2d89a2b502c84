//! What a connection is good for once the group runs: it closes when the process at its other end
//! ends.

use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use snow::TransportState;

use super::channel::{Channel, open, seal};
use super::stream::{Stream, keep_alive};

/// The one message that is sent: the sender leaves on purpose.
const LEFT: &[u8] = b"left";

/// The longest frame that says it, its length and seal included.
const FRAME_MAX: usize = 32;

/// The shortest time between two of the kernel's own probes.
const PROBE_MIN: Duration = Duration::from_secs(1);

/// How many of them may go unanswered.
const PROBES: u32 = 3;

/// What a look finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The peer's process holds its end.
    Alive,
    /// It said that it leaves.
    Left,
    /// Its process ended without saying so.
    Gone,
    /// Its host does not answer.
    Silent,
    /// It sent what no member sends.
    Garbled,
}

/// The connection to one peer.
#[derive(Debug)]
pub struct Lifeline {
    stream: Stream,
    cipher: Option<TransportState>,
    frame: [u8; FRAME_MAX],
    length: usize,
    end: Option<Sign>,
}

impl Lifeline {
    pub(super) fn new(channel: Channel, silence: Duration) -> Self {
        let (stream, cipher) = channel.into_parts();
        if let Stream::Tcp(stream) = &stream
            && let Err(error) = watch(stream, silence)
        {
            // Without it a dead host is noticed by whoever writes to it.
            tracing::debug!(%error, "the kernel does not watch a connection");
        }
        Self { stream, cipher, frame: [0; FRAME_MAX], length: 0, end: None }
    }

    /// Looks, without waiting: a system call or two. What ended once stays so.
    pub fn look(&mut self) -> Sign {
        if let Some(end) = self.end {
            return end;
        }
        loop {
            let free = &mut self.frame[self.length..];
            if free.is_empty() {
                return self.ended(Sign::Garbled);
            }
            match self.stream.read_now(free) {
                Ok(0) => return self.ended(Sign::Gone),
                Ok(count) => self.length += count,
                Err(Errno::AGAIN) => return Sign::Alive,
                Err(Errno::INTR) => continue,
                Err(Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH) => {
                    return self.ended(Sign::Silent);
                }
                Err(_) => return self.ended(Sign::Gone),
            }
            if let Some(sign) = self.message() {
                return self.ended(sign);
            }
        }
    }

    fn ended(&mut self, sign: Sign) -> Sign {
        self.end = Some(sign);
        sign
    }

    /// What a whole frame says, once there is one.
    fn message(&mut self) -> Option<Sign> {
        let ([low, high], rest) = self.frame[..self.length].split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        if length > FRAME_MAX - 2 {
            return Some(Sign::Garbled);
        }
        let frame = rest.get(..length)?;
        let says = open(self.cipher.as_mut(), frame);
        Some(if says.is_ok_and(|message| message == LEFT) { Sign::Left } else { Sign::Garbled })
    }

    /// Says that this member leaves on purpose. Never waits; a peer that takes nothing is not told.
    pub fn leave(&mut self) {
        if let Ok(frame) = seal(self.cipher.as_mut(), LEFT) {
            // A frame this short goes whole or not at all; a peer that is gone need not hear it.
            let _ = self.stream.write_now(&frame);
        }
        self.stream.shutdown(Shutdown::Write);
    }
}

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The kernel probes an idle connection.
fn watch(stream: &TcpStream, silence: Duration) -> std::io::Result<()> {
    keep_alive(stream, (silence / PROBES).max(PROBE_MIN), PROBES)
}
