//! The main thread of a node that is a member: waits until the member has to end, then ends it.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::event::NodeEvent;
use super::input::Input;
use crate::log_file::Rotation;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::output::{Output, print_notice};
use tramontane_runtime::group::Running;
use tramontane_runtime::member::Stopped;

/// Interval between checks for signals and of the member's state.
const TICK: Duration = Duration::from_millis(20);

/// Time allowed for the node's messages to be delivered everywhere before it leaves anyway.
const SETTLE: Duration = Duration::from_secs(5);

/// Time allowed for the others to continue without this node.
const LEAVE: Duration = Duration::from_secs(30);

/// Signals that arrive within this time of the first are part of the same request: `timeout` and
/// terminals may send a signal twice.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Time limit for writing delivered lines when the command fails.
const DRAIN: Duration = Duration::from_secs(1);

/// Time for which a node that has been asked to end waits for a reader that reads nothing.
const UNREAD: Duration = Duration::from_secs(5);

/// A node that is a member.
pub(super) struct RunningNode {
    running: Running,
    output: Output,
    events: Receiver<NodeEvent>,
    rotation: Rotation,
    leave_at_end: bool,
    /// `None` if the input cannot be read.
    input: Option<Input>,
    input_ended: bool,
    /// Whether any input line was refused.
    has_refused: bool,
    /// The reason why this node leaves, if it was not asked to.
    failure: Option<Failure>,
}

impl RunningNode {
    pub(super) fn new(
        running: Running,
        output: Output,
        events: Receiver<NodeEvent>,
        rotation: Rotation,
        leave_at_end: bool,
    ) -> Self {
        let (input, input_ended, has_refused, failure) = (None, false, false, None);
        Self {
            running,
            output,
            events,
            rotation,
            leave_at_end,
            input,
            input_ended,
            has_refused,
            failure,
        }
    }

    pub(super) const fn running(&self) -> &Running {
        &self.running
    }

    /// Sets the input, which is read from then on.
    pub(super) fn read(&mut self, input: Input) {
        self.input = Some(input);
    }

    /// Waits until this member has to end or has ended.
    pub(super) fn wait_for_end(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        while !self.is_to_leave(interrupts) {
            if let Some(stopped) = self.running.stopped() {
                return judge(stopped);
            }
            self.take_events(TICK);
            self.rotation.rotate();
        }
        self.leave(interrupts)
    }

    fn is_to_leave(&self, interrupts: &Interrupts) -> bool {
        interrupts.is_asked() || self.failure.is_some() || (self.input_ended && self.leave_at_end)
    }

    /// Handles the pending events. Waits for the first one for at most `timeout`.
    fn take_events(&mut self, timeout: Duration) {
        let mut next = self.events.recv_timeout(timeout);
        while let Ok(event) = next {
            match event {
                NodeEvent::InputEnded => self.input_ended = true,
                NodeEvent::Notice(text) => print_notice(&text),
                NodeEvent::Refused(text) => {
                    self.has_refused = true;
                    print_notice(&text);
                }
                NodeEvent::OutputFailed(error) => self.fail(Failure::output(&error)),
                NodeEvent::Failed(failure) => self.fail(failure),
            }
            next = self.events.recv_timeout(Duration::ZERO);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Leaves the group. A further signal ends the node at once.
    fn leave(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let mut signals = Signals::new(interrupts);
        self.input.iter().for_each(Input::stop);
        let until = Instant::now() + SETTLE;
        // The others may never stop sending. The node then leaves with messages in flight.
        while Instant::now() < until
            && !self.running.settle(TICK)
            && self.running.stopped().is_none()
        {
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
                let what = format_args!(
                    "the others have not installed a view without this node within {} s",
                    LEAVE.as_secs()
                );
                return Err(Failure::group(
                    what,
                    "see 'tramontane status'; they will remove this node when it falls silent",
                ));
            }
            signals.check()?;
            self.take_events(TICK);
        }
    }

    /// Ends the member, writes the remaining output, and returns the command's outcome.
    pub(super) fn end(
        mut self,
        outcome: Result<(), Failure>,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        self.take_events(Duration::ZERO);
        interrupts.forget();
        if outcome.is_err() || self.failure.is_some() {
            self.output.drain(DRAIN);
            // If the output were not discarded, a member that waits for room in it would never end.
            self.output.discard();
        }
        // The input is stopped first, because it holds the member and thereby its logs.
        let handed = self.input.take().and_then(Input::end);
        self.take_events(Duration::ZERO);
        let Self {
            running,
            output,
            events,
            rotation,
            leave_at_end,
            input_ended,
            has_refused,
            mut failure,
            input: _,
        } = self;
        // The requester learns that this node has left when the connection closes, and may then use
        // the log files.
        drop(rotation);
        let (_, unsent) = running.close();
        take_last(&events, &mut failure);
        handed
            .iter()
            .flat_map(|handed| handed.advice(&unsent))
            .for_each(|text| print_notice(&text));
        match (outcome, failure) {
            (Err(outcome), Some(failure)) => {
                // Reports the first failure; the others are its consequences.
                failure.report();
                Err(outcome)
            }
            (Err(failure), None) | (Ok(()), Some(failure)) => Err(failure),
            (Ok(()), None) => {
                let patience = if input_ended && leave_at_end { None } else { Some(UNREAD) };
                write_rest(&output, &events, interrupts, patience)?;
                let is_short = has_refused && input_ended && leave_at_end;
                // Each refused line has already been reported.
                if is_short { Err(Failure::silent(Status::Input)) } else { Ok(()) }
            }
        }
    }
}

/// Writes the rest of the output after all deliveries, when the member has ended.
fn write_rest(
    output: &Output,
    events: &Receiver<NodeEvent>,
    interrupts: &Interrupts,
    patience: Option<Duration>,
) -> Result<(), Failure> {
    let mut last = (output.written(), Instant::now());
    while !output.drain(TICK) && !interrupts.is_asked() {
        if let Some(failure) = reason(events) {
            return Err(failure);
        }
        let written = output.written();
        if written != last.0 {
            last = (written, Instant::now());
        }
        if let Some(patience) = patience.filter(|patience| last.1.elapsed() >= *patience) {
            let what = format_args!(
                "the output was not read for {} s, and the rest of it is lost",
                patience.as_secs()
            );
            return Err(Failure::new(
                Status::OutputClosed,
                what,
                "read it, or give --log or --quiet",
            ));
        }
    }
    Ok(())
}

/// Takes the events that arrived during the shutdown.
fn take_last(events: &Receiver<NodeEvent>, failure: &mut Option<Failure>) {
    for event in events.try_iter() {
        match event {
            NodeEvent::Notice(text) | NodeEvent::Refused(text) => print_notice(&text),
            NodeEvent::OutputFailed(error) => {
                *failure = failure.take().or_else(|| Some(Failure::output(&error)))
            }
            NodeEvent::Failed(why) => *failure = failure.take().or(Some(why)),
            NodeEvent::InputEnded => {}
        }
    }
}

/// Returns the reason that the application could not continue, if it failed before this node was a
/// member.
pub(super) fn reason(events: &Receiver<NodeEvent>) -> Option<Failure> {
    events.try_iter().find_map(|event| match event {
        NodeEvent::Failed(failure) => Some(failure),
        NodeEvent::OutputFailed(error) => Some(Failure::output(&error)),
        NodeEvent::InputEnded | NodeEvent::Notice(_) | NodeEvent::Refused(_) => None,
    })
}

/// Decides what to report when this node is no longer a member.
fn judge(stopped: Stopped) -> Result<(), Failure> {
    match stopped {
        Stopped::Left => Ok(()),
        stopped => Err(stopped.into()),
    }
}

/// Signals that arrive while the node leaves.
struct Signals<'i> {
    interrupts: &'i Interrupts,
    started: Instant,
    is_armed: bool,
}

impl<'i> Signals<'i> {
    fn new(interrupts: &'i Interrupts) -> Self {
        Self { interrupts, started: Instant::now(), is_armed: false }
    }

    /// Fails if a further signal arrived.
    fn check(&mut self) -> Result<(), Failure> {
        if self.is_armed {
            return Ok(self.interrupts.check()?);
        }
        if self.started.elapsed() > SAME_SIGNAL {
            self.interrupts.forget();
            self.is_armed = true;
        }
        Ok(())
    }
}
