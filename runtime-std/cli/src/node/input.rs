//! Sends standard input to the group through all views: one line is one message.
//!
//! # Invariants
//! - Each line that was read is sent, refused, or listed when the node ends.
//! - The thread reads only available input, so that it ends soon after a request to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::event::NodeEvent;
use super::meter::Meter;
use super::sent_lines::{Lost, SentLines};
use tramontane_local::lines::{Cutter, Line, unreadable};
use tramontane_runtime::group::{LargeUnsent, Ordinal, SendLargeError, Sender};
use tramontane_runtime::member::SendError;

/// Time limit for one wait, for a slot or for input. The thread then checks whether it should end.
const PATIENCE: Duration = Duration::from_millis(50);

/// [`PATIENCE`] as a system structure.
const PATIENCE_SYSTEM: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Time limit for the thread to end. Another process that reads the same input may have taken the
/// input that the thread was about to read.
const END: Duration = Duration::from_secs(1);

/// Number of bytes per read.
const BUFFER_BYTES: usize = 64 << 10;

/// The thread that reads and sends.
pub(super) struct Input {
    thread: JoinHandle<SentLines>,
    is_over: Arc<AtomicBool>,
}

/// The path by which lines reach the group.
pub(super) struct Lines {
    /// `None` if this node sends in no subgroup; lines are then refused.
    pub(super) sender: Option<Sender>,
    pub(super) line_max: usize,
    /// Maximum number of messages that may be unsent when a member ends.
    pub(super) unsent_max: usize,
    pub(super) meter: Arc<Meter>,
}

impl Input {
    /// Starts the thread.
    pub(super) fn start(lines: Lines, events: mpsc::Sender<NodeEvent>) -> io::Result<Self> {
        let is_over = Arc::<AtomicBool>::default();
        let Lines { sender, line_max, unsent_max, meter } = lines;
        let reading = Reading {
            is_over: Arc::clone(&is_over),
            events,
            cutter: Cutter::new(line_max),
            handed: SentLines::new(unsent_max),
            way: LineWay { sender, line_max, is_over: Arc::clone(&is_over), meter, handed_over: 0 },
        };
        let thread =
            std::thread::Builder::new().name("tramontane-read".into()).spawn(|| reading.run())?;
        Ok(Self { thread, is_over })
    }

    /// Stops reading and sending.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Ends the thread, and returns what became of the lines that it read. Returns `None` if the
    /// thread does not end.
    pub(super) fn end(self) -> Option<SentLines> {
        self.stop();
        let until = Instant::now() + END;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(PATIENCE / 50);
        }
        self.thread.is_finished().then(|| self.thread.join().ok()).flatten()
    }
}

/// The reasons that no more lines are sent.
enum SendEnd {
    /// The line cannot be sent.
    Refused(String),
    /// This node is leaving.
    NotWanted,
}

/// The state of the thread.
struct Reading {
    is_over: Arc<AtomicBool>,
    events: mpsc::Sender<NodeEvent>,
    cutter: Cutter,
    handed: SentLines,
    way: LineWay,
}

/// The path of a single line to the group.
struct LineWay {
    sender: Option<Sender>,
    line_max: usize,
    is_over: Arc<AtomicBool>,
    meter: Arc<Meter>,
    /// Number of lines handed over.
    handed_over: u64,
}

impl Reading {
    fn run(mut self) -> SentLines {
        let mut buffer = vec![0; BUFFER_BYTES];
        while !self.is_over() {
            match read_what_is_there(&mut buffer) {
                Ok(None) => {}
                Ok(Some(0)) => {
                    self.end_of_input();
                    return self.handed;
                }
                Ok(Some(count)) => self.take(&buffer[..count]),
                Err(error) => {
                    // The node continues without input, as it does after the input has ended.
                    let unreadable = unreadable(&error.into()).text().to_owned();
                    self.send_event(NodeEvent::Refused(unreadable));
                    self.end_of_input();
                    return self.handed;
                }
            }
        }
        if self.cutter.is_begun() && self.handed.lost().is_none() {
            let number = self.cutter.number();
            self.handed.lose(Lost { from: number, to: number, has_end: false });
        }
        self.handed
    }

    fn end_of_input(&mut self) {
        let Self { cutter, handed, events, way, .. } = self;
        if let Some((number, line)) = cutter.end() {
            match way.hand_over(line) {
                Ok(ordinal) => handed.add(number, ordinal),
                Err(SendEnd::NotWanted) => {
                    handed.lose(Lost { from: number, to: number, has_end: true })
                }
                Err(SendEnd::Refused(why)) => say_refused(events, number, &why),
            }
        }
        self.send_event(NodeEvent::InputEnded);
    }

    /// Sends the lines that the new bytes complete.
    fn take(&mut self, mut bytes: &[u8]) {
        let Self { cutter, is_over, handed, events, way } = self;
        let mut is_wanted = true;
        while let Some((number, line)) = cutter.next(&mut bytes) {
            if !is_wanted {
                handed.lose(Lost { from: number, to: number, has_end: true });
                continue;
            }
            match way.hand_over(line) {
                Ok(ordinal) => handed.add(number, ordinal),
                Err(SendEnd::Refused(why)) => say_refused(events, number, &why),
                Err(SendEnd::NotWanted) => {
                    is_wanted = false;
                    // The sender may learn of the end before the rest of the node does.
                    is_over.store(true, Ordering::Relaxed);
                    handed.lose(Lost { from: number, to: number, has_end: true });
                }
            }
        }
        if !is_wanted && cutter.is_begun() {
            let number = cutter.number();
            handed.lose(Lost { from: number, to: number, has_end: false });
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn send_event(&self, event: NodeEvent) {
        // The command may have ended already.
        let _ = self.events.send(event);
    }
}

fn say_refused(events: &mpsc::Sender<NodeEvent>, number: u64, why: &str) {
    // The command may have ended already.
    let _ =
        events.send(NodeEvent::Refused(format!("line {number} of the input was not sent: {why}")));
}

/// Reads the available input. Returns `None` if nothing arrives within [`PATIENCE`], and an empty
/// slice at the end of the input.
fn read_what_is_there(buffer: &mut [u8]) -> rustix::io::Result<Option<usize>> {
    use rustix::io::Errno;
    let input = rustix::stdio::stdin();
    let there = poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&PATIENCE_SYSTEM));
    let read = there.and_then(|count| {
        if count == 0 { Ok(None) } else { rustix::io::read(input, buffer).map(Some) }
    });
    match read {
        Err(Errno::INTR | Errno::AGAIN) => Ok(None),
        read => read,
    }
}

impl LineWay {
    fn hand_over(&mut self, line: Line<'_>) -> Result<Ordinal, SendEnd> {
        let refused = |why: String| Err(SendEnd::Refused(why));
        let Some(sender) = &mut self.sender else {
            let what = "this node sends in no subgroup; add it to the senders in the group file, or give it no input";
            return refused(what.to_owned());
        };
        let Line::Whole(line) = line else {
            let what = format_args!("it is longer than {} bytes", self.line_max);
            return refused(format!(
                "{what}; raise message_max or large_max in the group file of all members"
            ));
        };
        let number = self.handed_over + 1;
        self.meter.goes_out(number);
        let sent = if line.len() > sender.message_max() {
            send_large(sender, line, &self.is_over)
        } else {
            send(sender, line, &self.is_over)
        };
        if sent.is_ok() {
            self.handed_over = number;
            self.meter.sent(line.len());
        } else {
            self.meter.stays(number);
        }
        sent
    }
}

fn send(sender: &mut Sender, line: &[u8], is_over: &AtomicBool) -> Result<Ordinal, SendEnd> {
    loop {
        if is_over.load(Ordering::Relaxed) {
            return Err(SendEnd::NotWanted);
        }
        match sender.reserve(line.len(), PATIENCE) {
            Ok(mut slot) => {
                slot.payload().copy_from_slice(line);
                // A receipt would count references that two threads share.
                return Ok(slot.commit());
            }
            Err(error) => go_on(error)?,
        }
    }
}

/// Sends a line that is too large for a slot.
fn send_large(sender: &mut Sender, line: &[u8], is_over: &AtomicBool) -> Result<Ordinal, SendEnd> {
    let refused = |error: SendLargeError| SendEnd::Refused(error.to_string());
    let mut buffer = sender.buffer(line.len()).map_err(refused)?;
    if let Some(place) = buffer.get_mut(..line.len()) {
        place.copy_from_slice(line);
    }
    loop {
        if is_over.load(Ordering::Relaxed) {
            return Err(SendEnd::NotWanted);
        }
        match sender.send_large(buffer, line.len(), PATIENCE) {
            Ok(receipt) => return Ok(receipt.ordinal()),
            Err(LargeUnsent { why: SendLargeError::Send(error), buffer: Some(back) }) => {
                go_on(error)?;
                buffer = back;
            }
            Err(LargeUnsent { why: SendLargeError::Send(SendError::Stopped(_)), buffer: None }) => {
                return Err(SendEnd::NotWanted);
            }
            Err(LargeUnsent { why, .. }) => return Err(refused(why)),
        }
    }
}

/// Succeeds if the send should be retried, and fails if no more lines can be sent.
fn go_on(error: SendError) -> Result<(), SendEnd> {
    match error {
        SendError::TimedOut(_) => Ok(()),
        SendError::Stopped(_) => Err(SendEnd::NotWanted),
        error => Err(SendEnd::Refused(error.to_string())),
    }
}
