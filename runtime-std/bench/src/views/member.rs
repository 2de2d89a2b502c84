//! One process of `bench views`: it sends at a steady pace, checks and logs its deliveries, and
//! reports events.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;

use crate::error::BenchError;
use crate::views::events::{
    Incarnation, MESSAGE_BYTES, NAME_BYTES, Named, Order, Report, Task, ViewMember, log_name,
    promises_name,
};
use tramontane_local::clock::now_ns;
use tramontane_local::crew::{Reporter, Worker};
use tramontane_runtime::group::{
    Application, Fate, Forming, Messages, Receipt, Running, StartOptions, ViewChanged, start,
};
use tramontane_runtime::member::{SendError, Stopped};
use tramontane_runtime::shared_memory::Root;

const GROUP: SubgroupId = SubgroupId(0);

/// Time limit for a send, which may have to wait for a change of view.
const SEND_LIMIT: Duration = Duration::from_secs(60);

/// The receipts of a process's own messages.
struct Promises {
    /// Messages sent but not known to have been delivered.
    open: VecDeque<Receipt>,
    delivered: u64,
    file: File,
}

impl Promises {
    /// Checks the receipts, and stores the result where it survives a kill.
    fn look(&mut self) -> io::Result<()> {
        let before = self.delivered;
        while self.open.front().is_some_and(|receipt| receipt.fate() == Fate::Delivered) {
            self.open.pop_front();
            self.delivered += 1;
        }
        if self.delivered == before {
            return Ok(());
        }
        self.file.write_all_at(&self.delivered.to_le_bytes(), 0)
    }
}

/// The application: its state is the next number expected from each start of a sender.
struct Ledger {
    task: Task,
    reporter: Reporter<Report>,
    next: BTreeMap<Incarnation, u64>,
    view: u64,
    is_first: bool,
    log: Option<File>,
    lines: Vec<u8>,
}

impl Ledger {
    fn report(&self, report: &Report) {
        // Without a parent, nobody reads the report, and the leash ends this process.
        let _ = self.reporter.send(report);
    }

    fn check(&mut self, named: Named) {
        let next = self.next.entry(named.sender).or_insert(0);
        let expected = std::mem::replace(next, named.number + 1);
        if named.number != expected {
            let Named { sender, number } = named;
            self.report(&Report::Broken(format!(
                "{:?}: message {number} of {sender:?} arrived, but message {expected} was expected",
                self.task.own
            )));
        }
    }
}

impl Application for Ledger {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self.lines.clear();
        for message in messages {
            let Some(named) = Named::decode(message.payload) else {
                self.report(&Report::Broken("a message arrived without a name".to_owned()));
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
            self.report(&Report::Delivered { view: self.view, at_ns: now_ns() });
        }
        // Written immediately, so that the deliveries of a killed process are in its log.
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.write_all(&self.lines)) {
            self.report(&Report::Broken(format!("cannot write a log: {error}")));
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        self.view = change.view.id.0;
        self.is_first = true;
        let name = log_name(self.view, self.task.own);
        self.log = File::create(self.task.folder.join(name)).ok();
        let members = change.view.members.iter().map(|node| node.get()).collect();
        self.report(&Report::View { id: self.view, members });
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        let names = self
            .next
            .iter()
            .map(|(sender, number)| Named { sender: *sender, number: *number }.encode());
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
            self.next.insert(named.sender, named.number);
        }
        Ok(())
    }
}

/// Runs one process, until its parent releases it or it is no longer in the group.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(task: &str) -> Result<(), BenchError> {
    let (task, worker) = Worker::<ViewMember>::attach(task)?;
    let reporter = worker.reporter();
    let ledger = Ledger {
        task: task.clone(),
        reporter,
        next: BTreeMap::new(),
        view: 0,
        is_first: false,
        log: None,
        lines: Vec::new(),
    };
    let options = StartOptions {
        root: Root::under(&task.folder),
        time_limit: SEND_LIMIT,
        cancel: worker.released(),
        forming: Forming { new_group: true, ..Forming::default() },
        ..StartOptions::new(task.own.node)
    };
    let running = start(task.description.clone(), options, ledger)
        .map_err(|error| BenchError::Setup(format!("node {}: {error}", task.own.node)))?;
    let is_released = worker.released();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sent = send(&task, &running, is_released);
            if let Err(error) = sent {
                let _ = reporter.send(&Report::Broken(format!("{:?}: {error}", task.own)));
            }
            let stopped = running.stopped();
            let _ = reporter.send(&Report::Ended {
                at_ns: now_ns(),
                left: stopped == Some(Stopped::Left),
                why: stopped.map_or_else(|| "released".to_owned(), |stopped| stopped.to_string()),
            });
            // The other thread waits for an order that the parent will not send.
            std::process::exit(0);
        });
        while let Some(Order::Leave) = worker.next_order() {
            running.ask_to_leave();
        }
    });
    Ok(())
}

/// Sends messages until the end of the run.
fn send(
    task: &Task,
    running: &Running,
    is_released: &AtomicBool,
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(mut sender) = running.sender_of(GROUP) else { return Ok(()) };
    let file = File::create(task.folder.join(promises_name(task.own)))?;
    let mut promises = Promises { open: VecDeque::new(), delivered: 0, file };
    let mut number = 0;
    while !is_released.load(Ordering::Relaxed) {
        let named = Named { sender: task.own, number };
        let sent = sender.send_with(MESSAGE_BYTES as usize, SEND_LIMIT, |payload| {
            payload[..NAME_BYTES].copy_from_slice(&named.encode());
        });
        let is_over = match sent {
            Ok(receipt) => {
                promises.open.push_back(receipt);
                number += 1;
                false
            }
            Err(SendError::Stopped(_)) => true,
            Err(error) => return Err(error.into()),
        };
        promises.look()?;
        if is_over {
            return Ok(());
        }
        std::thread::sleep(Duration::from_micros(task.pace_us));
    }
    Ok(())
}
