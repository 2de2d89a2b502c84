//! `tramontane-corosync`: one member of Corosync's closed process groups (CPG), for the conformance
//! suite.
//!
//! | file | what it knows |
//! |---|---|
//! | `cpg/` | Corosync's library |
//! | `daemon` | starting a daemon of one's own |
//! | `views/` | ids for views, which CPG has not |
//! | `members` | names for processes |
//! | `protocol` | the adapter protocol, which the reference adapter speaks too |
//! | `group` | one group: its upcalls become lines |
//! | `joining`, `member` | from `init` to `init_ok`; from there to `halt` |
//!
//! A thread reads commands, one for each group makes upcalls, and the main one carries out
//! commands.

mod cpg;
mod daemon;
mod group;
mod joining;
mod member;
mod members;
#[path = "../../protocol.rs"]
mod protocol;
mod views;

use std::io::BufRead as _;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};

use daemon::Settings;
use joining::{Daemons, Refusal};
use protocol::{Command, Init, Line, tell};

const USAGE: &str = "usage: tramontane-corosync [--daemon shared|own] [--token-ms N] [--networks PID,PID,...]

One member of a Corosync closed process group, driven over standard input and output; it is started by
tramontane-conformance, once for each member.

  --daemon shared   use the daemon that runs here (the default)
  --daemon own      start one, in the network namespace where this program finds itself
  --token-ms N      with own: how long a silent node is waited for; 1000 unless told
  --networks LIST   with own: where the driver gives the nodes no addresses of their own, the network
                    namespaces of these processes, one for each node, with addresses 10.113.1.1 and on";

/// What the main thread waits for.
#[derive(Debug)]
enum Event {
    /// A line of the driver's.
    Command(String),
    /// The driver has closed its end.
    InputOver,
    /// A group's thread has something to say.
    Notice(group::Notice),
}

fn main() -> ExitCode {
    let Some(daemons) = daemons(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    match run(&daemons) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn daemons(mut arguments: impl Iterator<Item = String>) -> Option<Daemons> {
    let mut own = false;
    let mut settings = Settings { token_ms: 1000, networks: Vec::new() };
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()?) {
            ("--daemon", which) if which == "own" => own = true,
            ("--daemon", which) if which == "shared" => own = false,
            ("--token-ms", number) => settings.token_ms = number.parse().ok()?,
            ("--networks", list) => {
                settings.networks =
                    list.split(',').map(|pid| pid.parse().ok()).collect::<Option<_>>()?;
            }
            _ => return None,
        }
    }
    Some(if own { Daemons::Own(settings) } else { Daemons::Shared })
}

/// The first line says which member this is; the rest follows in `member`.
fn run(daemons: &Daemons) -> Result<(), String> {
    let mut first = String::new();
    std::io::stdin().read_line(&mut first).map_err(|error| format!("standard input: {error}"))?;
    if first.is_empty() {
        return Ok(());
    }
    let init: Init = match serde_json::from_str(&first) {
        Ok(Command::Init(init)) => init,
        Ok(_) => return Err("the first command is not an init".to_owned()),
        Err(error) => return Err(format!("the first command: {error}")),
    };
    // Before any thread: see `Daemon::start`.
    let daemon = match joining::daemon(daemons, &init) {
        Ok(daemon) => daemon,
        Err(refusal) => return refuse(&refusal),
    };
    let (events, inbox) = mpsc::channel();
    read_commands(events.clone());
    match joining::join(&init, daemons, daemon, &events, inbox) {
        Ok(member) => member.run(),
        Err(refusal) => refuse(&refusal),
    }
}

fn refuse(refusal: &Refusal) -> Result<(), String> {
    let text = refusal.to_string();
    let error = Line::Error { code: refusal.code(), definite: true, message: None, text: &text };
    tell(&error).map_err(|error| error.to_string())?;
    match refusal {
        Refusal::Unsupported(_) => Ok(()),
        Refusal::Failed(_) => Err(text),
    }
}

fn read_commands(events: Sender<Event>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            // What is no text is no command; the main thread says so.
            let line = line.unwrap_or_default();
            if events.send(Event::Command(line)).is_err() {
                return;
            }
        }
        // The main thread is gone only when the program ends.
        let _ = events.send(Event::InputOver);
    });
}

/// The main thread's end of the channel.
type Events = Receiver<Event>;
