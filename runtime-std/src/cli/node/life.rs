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
use crate::group::{Running, Unsent};
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
        advice(&unsent).iter().for_each(|text| say(text));
        self.failure.map_or(outcome, Err)
    }
}

/// What to do about lines that this member ended without: those that were sent may be delivered elsewhere, and would be
/// twice if they were sent again.
fn advice(unsent: &[Unsent]) -> Vec<String> {
    let sent = unsent.iter().filter(|unsent| unsent.was_sent).count();
    let kept = unsent.len() - sent;
    let mut advice = Vec::new();
    if kept > 0 {
        advice.push(format!("lines of the input that were not sent: {kept}; send them again"));
    }
    if sent > 0 {
        let what = "lines of the input that were sent, and that others may have delivered";
        advice.push(format!("{what}: {sent}; look into a log before you send them again"));
    }
    advice
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_sent_is_to_be_sent_again_without_a_look() {
        let unsent = |was_sent| Unsent {
            subgroup: tramontane_core::ids::SubgroupId(0),
            payload: b"line".to_vec(),
            was_sent,
        };
        assert_eq!(advice(&[]), [""; 0]);
        let [kept, sent] = <[String; 2]>::try_from(advice(&[unsent(true), unsent(false), unsent(true)]))
            .expect("two sentences");
        assert_eq!(kept, "lines of the input that were not sent: 1; send them again");
        assert!(sent.contains("may have delivered: 2; look into a log before"), "{sent}");
        assert_eq!(advice(&[unsent(false)]), [kept]);
        assert_eq!(advice(&[unsent(true)]).len(), 1);
    }
}
