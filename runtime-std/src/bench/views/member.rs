//! One process of `bench views`: it sends at a steady pace, checks and logs what it delivers, and says on its output what
//! happens to it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tramontane_core::ids::SubgroupId;

use crate::bench::BenchError;
use crate::group::{
    Description, Fate, Forming, Messages, Receipt, Replica, Running, Sender, StartOptions,
    ViewChanged, start,
};
use crate::member::{SendError, Settings, Stopped};
use crate::process::Leash;
use crate::rdma::DeviceOptions;
use crate::shared_memory::Root;

const GROUP: SubgroupId = SubgroupId(0);

/// Bytes of a message.
pub(super) const MESSAGE_BYTES: u32 = 64;

/// How long a send may wait: as long as a change may take.
const SEND_LIMIT: Duration = Duration::from_secs(60);

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The group.
    pub description: Description,
    /// Which node it is.
    pub node: u32,
    /// Which start of that node.
    pub start: u32,
    /// Where its logs go, and, over shared memory, where the group lives.
    pub folder: PathBuf,
    /// Between two messages.
    pub pace_us: u64,
}

/// What a process says, one JSON object a line. Times are of the machine's monotonic clock, in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// A view was installed.
    View { id: u64, members: Vec<u32> },
    /// The first message of a view was delivered.
    Delivered { view: u64, at_ns: u64 },
    /// A promise was broken.
    Broken(String),
    /// The last word.
    Ended { at_ns: u64, left: bool, why: String },
}

/// What the parent says.
pub(super) const LEAVE: &str = "leave";

/// The machine's monotonic clock, in ns: the same for all processes.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn say(said: &Said) {
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    // Not through the standard library's handle, whose lock the command holds. A line goes whole into a pipe; without a
    // parent nobody listens, and the leash sees to the end.
    let _ = rustix::io::write(rustix::stdio::stdout(), &line);
}

/// Which message: the sender's node and start, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) node: u32,
    pub(super) start: u32,
    pub(super) number: u64,
}

/// Bytes of a name, in messages, logs and states.
pub(super) const NAME_BYTES: usize = 16;

impl Named {
    pub(super) fn encode(self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        bytes[..4].copy_from_slice(&self.node.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (node, rest) = bytes.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let number = rest.first_chunk()?;
        Some(Self {
            node: u32::from_le_bytes(*node),
            start: u32::from_le_bytes(*start),
            number: u64::from_le_bytes(*number),
        })
    }
}

/// The log of one member in one view.
pub(super) fn log_name(view: u64, node: u32, start: u32) -> String {
    format!("view-{view}-{node}-{start}.log")
}

/// The file in which a process says of how many of its messages it was told that they are delivered: one number.
pub(super) fn promises_name(node: u32, start: u32) -> String {
    format!("promised-{node}-{start}")
}

/// What a process was told of its own messages.
struct Promises {
    /// Sent, and not known to be delivered.
    open: VecDeque<Receipt>,
    delivered: u64,
    file: File,
}

impl Promises {
    /// Looks what became of messages, and keeps that where a killed process leaves it.
    fn look(&mut self, sender: &Sender) -> io::Result<()> {
        let before = self.delivered;
        while self.open.front().is_some_and(|receipt| sender.fate(*receipt) == Fate::Delivered) {
            self.open.pop_front();
            self.delivered += 1;
        }
        if self.delivered == before {
            return Ok(());
        }
        self.file.write_all_at(&self.delivered.to_le_bytes(), 0)
    }
}

/// The application: the next number of each sender's start is its state.
struct Ledger {
    part: Part,
    next: BTreeMap<(u32, u32), u64>,
    view: u64,
    is_first: bool,
    log: Option<File>,
    lines: Vec<u8>,
}

impl Ledger {
    fn check(&mut self, named: Named) {
        let next = self.next.entry((named.node, named.start)).or_insert(0);
        if named.number != *next {
            say(&Said::Broken(format!(
                "node {} start {}: message {} of node {} start {} came, and {next} was next",
                self.part.node, self.part.start, named.number, named.node, named.start
            )));
        }
        *next = named.number + 1;
    }
}

impl Replica for Ledger {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self.lines.clear();
        for message in messages {
            let Some(named) = Named::decode(message.payload) else {
                say(&Said::Broken("a message without a name".to_owned()));
                continue;
            };
            self.check(named);
            if !message.is_replayed {
                self.lines.extend(named.encode());
            }
        }
        if self.lines.is_empty() {
            return;
        }
        if self.is_first {
            self.is_first = false;
            say(&Said::Delivered { view: self.view, at_ns: now_ns() });
        }
        // Written at once: what a killed process delivered is in its log.
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.write_all(&self.lines)) {
            say(&Said::Broken(format!("a log cannot be written: {error}")));
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        self.view = change.view.id.0;
        self.is_first = true;
        let name = log_name(self.view, self.part.node, self.part.start);
        self.log = File::create(self.part.folder.join(name)).ok();
        let members = change.view.members.iter().map(|node| node.get()).collect();
        say(&Said::View { id: self.view, members });
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        let names = self.next.iter().map(|((node, start), number)| {
            Named { node: *node, start: *start, number: *number }.encode()
        });
        Box::new(Cursor::new(names.flatten().collect::<Vec<u8>>()))
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let names = bytes
            .chunks(NAME_BYTES)
            .map(|bytes| Named::decode(bytes).ok_or(io::ErrorKind::InvalidData));
        self.next.clear();
        for named in names {
            let named = named?;
            self.next.insert((named.node, named.start), named.number);
        }
        Ok(())
    }
}

/// Runs one process, until its parent lets go of it or it is out of the group.
///
/// # Errors
/// [`BenchError`].
pub(in crate::bench) fn run(part: &Part, leash: &Leash) -> Result<(), BenchError> {
    let ledger = Ledger {
        part: part.clone(),
        next: BTreeMap::new(),
        view: 0,
        is_first: false,
        log: None,
        lines: Vec::new(),
    };
    let options = StartOptions {
        node: part.node,
        root: Root::under(&part.folder),
        listener: None,
        device: DeviceOptions::default(),
        time_limit: SEND_LIMIT,
        cancel: leash.flag(),
        settings: Settings::default(),
        forming: Forming { new_group: true, ..Forming::default() },
    };
    let running = start(part.description.clone(), options, ledger)
        .map_err(|error| BenchError::Setup(format!("node {}: {error}", part.node)))?;
    let is_cut = leash.flag();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            send(part, &running, is_cut);
            let stopped = running.stopped();
            say(&Said::Ended {
                at_ns: now_ns(),
                left: stopped == Some(Stopped::Left),
                why: stopped.map_or_else(|| "let go".to_owned(), |stopped| stopped.to_string()),
            });
            // The other thread waits for a line of the parent, who has none.
            std::process::exit(0);
        });
        while let Some(line) = leash.next_line() {
            if line == LEAVE {
                running.ask_to_leave();
            }
        }
    });
    Ok(())
}

/// Sends until the end.
fn send(part: &Part, running: &Running, is_cut: &AtomicBool) {
    let Some(mut sender) = running.sender(GROUP) else { return };
    let broken =
        |error: &dyn std::fmt::Display| say(&Said::Broken(format!("node {}: {error}", part.node)));
    let mut promises = match File::create(part.folder.join(promises_name(part.node, part.start))) {
        Ok(file) => Promises { open: VecDeque::new(), delivered: 0, file },
        Err(error) => return broken(&error),
    };
    let mut number = 0;
    while !is_cut.load(Ordering::Relaxed) {
        let named = Named { node: part.node, start: part.start, number };
        let sent = sender.send_with(MESSAGE_BYTES as usize, SEND_LIMIT, |payload| {
            payload[..NAME_BYTES].copy_from_slice(&named.encode());
        });
        let is_over = matches!(sent, Err(SendError::Stopped(_)));
        match sent {
            Ok(receipt) => {
                promises.open.push_back(receipt);
                number += 1;
            }
            Err(SendError::Stopped(_)) => {}
            Err(error) => return broken(&error),
        }
        if let Err(error) = promises.look(&sender) {
            return broken(&error);
        }
        if is_over {
            return;
        }
        std::thread::sleep(Duration::from_micros(part.pace_us));
    }
}
