//! The sequencer's process: started by the first member that finds none, it serves all members of
//! the run.
//!
//! Invariants:
//! - one per shared folder: the process that holds the lock is the sequencer, and a second one ends
//!   at once;
//! - in its own session, so that signals to a member's process group do not reach it;
//! - never left running: it ends when no member has been connected for [`IDLE_MAX`], or when the
//!   folder vanishes.

use std::fs::File;
use std::io::{BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::mutants::{Mutation, Wrong};
use crate::order::EntryOrder;
use crate::sequence::Sequence;
use crate::shards::Shards;
use crate::wire::{self, Up};

/// The socket's name in the shared folder. Both sides use that folder as their working folder,
/// because a whole path may be too long for a socket's address.
const SOCKET: &str = "sequencer.socket";

/// How long the sequencer waits for a member.
const IDLE_MAX: Duration = Duration::from_secs(3);

/// How long the sequencer rests if nothing arrives.
const REST: Duration = Duration::from_millis(100);

/// An event from the members' numbered connections.
enum SequencerEvent {
    Opened(u64, Sender<Arc<str>>),
    Said(u64, Up),
    Closed(u64),
}

/// Connects to the sequencer of the working folder, and starts it if needed.
pub fn connect(
    deadline: Instant,
    shards: bool,
    mutation: Option<&Mutation>,
) -> std::io::Result<UnixStream> {
    loop {
        match UnixStream::connect(SOCKET) {
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => start(shards, mutation)?,
            connected => return connected,
        }
        // Starting takes a few milliseconds. A superfluous sequencer ends by itself.
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
            if Path::new(SOCKET).exists() {
                break;
            }
        }
    }
}

fn start(shards: bool, mutation: Option<&Mutation>) -> std::io::Result<()> {
    let log = File::options().append(true).create(true).open("sequencer.log")?;
    Command::new(std::env::current_exe()?)
        .arg("--sequencer")
        .args(shards.then_some("--shards"))
        .args(mutation.map(Mutation::arguments).into_iter().flatten())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map(drop)
}

/// Serves the working folder until the sequencer is no longer needed.
pub fn serve(shards: bool, mutation: Option<Mutation>) -> std::io::Result<()> {
    let lock = File::create("sequencer.lock")?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    rustix::process::setsid()?;
    // The socket of a killed sequencer may still exist.
    let _ = std::fs::remove_file(SOCKET);
    let listener = UnixListener::bind(SOCKET)?;
    let (events, incoming) = channel();
    std::thread::spawn(move || {
        for (connection, stream) in (0..).zip(listener.incoming().flatten()) {
            let _ = attend(connection, stream, &events);
        }
    });
    if shards {
        run(Shards::new(Wrong::new(mutation)), &incoming);
    } else {
        run(EntryOrder::new(mutation), &incoming);
    }
    std::fs::remove_file(SOCKET)
}

fn run(mut order: impl Sequence, incoming: &Receiver<SequencerEvent>) {
    let mut busy = Instant::now();
    while busy.elapsed() < IDLE_MAX && Path::new(SOCKET).exists() {
        match incoming.recv_timeout(order.rest().map_or(REST, |rest| rest.min(REST))) {
            Ok(SequencerEvent::Opened(connection, outbox)) => order.open(connection, outbox),
            Ok(SequencerEvent::Said(connection, up)) => order.hear(connection, up),
            Ok(SequencerEvent::Closed(connection)) => order.close(connection),
            Err(_) => {}
        }
        order.wake();
        if !order.is_alone() {
            busy = Instant::now();
        }
    }
}

/// Starts a thread to read a connection and one to write it, so that a member that does not read
/// delays no other.
fn attend(
    connection: u64,
    mut stream: UnixStream,
    events: &Sender<SequencerEvent>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (outbox, outgoing) = channel::<Arc<str>>();
    std::thread::spawn(move || {
        outgoing.iter().all(|line| stream.write_all(line.as_bytes()).is_ok())
    });
    // This fails only if the sequencer has just ended; the member sees the socket close.
    let _ = events.send(SequencerEvent::Opened(connection, outbox));
    let events = events.clone();
    std::thread::spawn(move || {
        while let Some(up) = wire::next(&mut reader) {
            let _ = events.send(SequencerEvent::Said(connection, up));
        }
        let _ = events.send(SequencerEvent::Closed(connection));
    });
    Ok(())
}
