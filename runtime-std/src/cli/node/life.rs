//! A node's life as its main thread sees it: it waits for what ends the member, and ends it.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::Event;
use crate::cli::exit::{Failure, Status};
use crate::cli::interrupt::Interrupts;
use crate::cli::output::Output;
use crate::group::Running;
use crate::member::Stopped;

/// Between two looks at signals and at the member's state.
const TICK: Duration = Duration::from_millis(20);

/// How long what was sent may take to be delivered everywhere before the node leaves all the same.
const SETTLE: Duration = Duration::from_secs(5);

/// How long the others may take to go on without this node.
const LEAVE: Duration = Duration::from_secs(30);

/// Signals that come so soon after the first are the same wish: `timeout` and terminals may well send one twice.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// How long what was delivered may take to be written when the command fails.
const DRAIN: Duration = Duration::from_secs(1);

/// A node that is a member.
pub(super) struct Life {
    running: Running,
    output: Output,
    events: Receiver<Event>,
    leave_at_end: bool,
    input_ended: bool,
    /// No more lines are sent.
    is_over: Arc<AtomicBool>,
    /// Why this node leaves, if it is not asked to.
    failure: Option<Failure>,
}

impl Life {
    pub(super) fn new(running: Running, output: Output, events: Receiver<Event>, leave_at_end: bool) -> Self {
        let is_over = Arc::default();
        Self { running, output, events, leave_at_end, input_ended: false, is_over, failure: None }
    }

    pub(super) const fn running(&self) -> &Running {
        &self.running
    }

    pub(super) const fn is_over(&self) -> &Arc<AtomicBool> {
        &self.is_over
    }

    /// Waits for what ends this member, and for its end.
    pub(super) fn attend(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        while !self.is_to_leave(interrupts) {
            if let Some(stopped) = self.running.stopped() {
                return judge(stopped);
            }
            self.take_events(TICK);
        }
        self.leave(interrupts)
    }

    fn is_to_leave(&self, interrupts: &Interrupts) -> bool {
        interrupts.is_asked() || self.failure.is_some() || (self.input_ended && self.leave_at_end)
    }

    /// Takes in the events that are there, waiting for the first at most so long.
    fn take_events(&mut self, timeout: Duration) {
        let mut next = self.events.recv_timeout(timeout);
        while let Ok(event) = next {
            match event {
                Event::InputEnded => self.input_ended = true,
                Event::Said(text) => say(&text),
                Event::OutputFailed(error) => self.fail(Failure::output(&error)),
                Event::Failed(failure) => self.fail(failure),
            }
            next = self.events.recv_timeout(Duration::ZERO);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Leaves the group, unless a further signal wants the end at once.
    fn leave(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let mut signals = Signals::new(interrupts);
        self.is_over.store(true, Ordering::Relaxed);
        let until = Instant::now() + SETTLE;
        // Others may send without end: then it leaves with something under way.
        while Instant::now() < until && !self.running.settle(TICK) && self.running.stopped().is_none() {
            signals.check()?;
            self.take_events(Duration::ZERO);
        }
        self.running.ask_to_leave();
        let until = Instant::now() + LEAVE;
        loop {
            if let Some(stopped) = self.running.stopped() {
                return judge(stopped);
            }
            if Instant::now() >= until {
                let what = format_args!("the others did not let this node go within {} s", LEAVE.as_secs());
                return Err(Failure::new(
                    Status::Group,
                    what,
                    "see 'tramontane status': they will remove it",
                ));
            }
            signals.check()?;
            self.take_events(TICK);
        }
    }

    /// Ends the member, writes what can be written, and gives the command's outcome.
    pub(super) fn end(
        mut self,
        outcome: Result<(), Failure>,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        self.take_events(Duration::ZERO);
        interrupts.forget();
        // All is delivered; now it is a matter between this process and its reader.
        let started = Instant::now();
        while !self.output.drain(TICK) && !interrupts.is_asked() && self.failure.is_none() {
            if outcome.is_err() && started.elapsed() > DRAIN {
                break;
            }
            self.take_events(Duration::ZERO);
        }
        // Without this, a member that waits for room in the output would never end.
        self.output.discard();
        let (_, unsent) = self.running.close();
        if !unsent.is_empty() {
            say(&format!("{} lines of the input were not delivered: send them again", unsent.len()));
        }
        self.failure.map_or(outcome, Err)
    }
}

/// Why the application could not go on, if it said so before there was a member.
pub(super) fn reason(events: &Receiver<Event>) -> Option<Failure> {
    events.try_iter().find_map(|event| match event {
        Event::Failed(failure) => Some(failure),
        Event::OutputFailed(error) => Some(Failure::output(&error)),
        Event::InputEnded | Event::Said(_) => None,
    })
}

/// What it means that this node is no member any more.
fn judge(stopped: Stopped) -> Result<(), Failure> {
    match stopped {
        Stopped::Left => Ok(()),
        stopped => Err(stopped.into()),
    }
}

/// One line for people.
fn say(text: &str) {
    // There is nowhere else to say it.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Signals that come while the node leaves.
struct Signals<'i> {
    interrupts: &'i Interrupts,
    started: Instant,
    is_armed: bool,
}

impl<'i> Signals<'i> {
    fn new(interrupts: &'i Interrupts) -> Self {
        Self { interrupts, started: Instant::now(), is_armed: false }
    }

    /// Fails if a further one came.
    fn check(&mut self) -> Result<(), Failure> {
        if self.is_armed {
            return self.interrupts.check();
        }
        if self.started.elapsed() > SAME_SIGNAL {
            self.interrupts.forget();
            self.is_armed = true;
        }
        Ok(())
    }
}
