//! A client under test: it multicasts the requested messages, in order.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::meeting::ShardsRun;
use super::order::InOrder;
use crate::adapter::node::{Commands, NodeUnderTest, TICK, answer, answer_unknown, greet, next};
use crate::adapter::payload;
use crate::adapter::protocol::{Command, Init, Line};
use crate::adapter::refusal::{StartRefusal, not_understood};
use tramontane_local::exit::Failure;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::shards::{
    Answers, Client, Destinations, GroupId, Places, SendError, StartError, StartOptions,
};

/// Time for which the client waits for answers before it checks for commands again.
const LOOK: Duration = Duration::from_millis(1);

/// Time for which a stopping client waits for messages in flight.
const SETTLE: Duration = Duration::from_millis(500);

/// A waiting message.
struct WaitingMessage {
    message: String,
    bytes: usize,
    first: GroupId,
    destinations: Destinations,
}

/// A connected client.
pub(super) struct ClientUnderTest {
    client: Client,
    features: Vec<&'static str>,
    waiting: VecDeque<WaitingMessage>,
    in_order: InOrder,
    payload: Vec<u8>,
}

impl ClientUnderTest {
    /// Connects the client to all groups, and tells them its node.
    pub(super) fn connect(
        run: &ShardsRun,
        init: &Init,
        features: Vec<&'static str>,
        interrupts: &Interrupts,
    ) -> Result<Self, StartRefusal> {
        let until = Instant::now() + run.time_limit;
        let mut options = StartOptions::default();
        options.time_limit = run.time_limit;
        options.cancel = interrupts.flag();
        let client = Client::connect(&run.description, Destinations::default(), options);
        interrupts.check()?;
        let mut client = client.map_err(Failure::from)?;
        let all = client.places().overlay().all();
        client
            .multicast(all, init.node.as_bytes(), Answers::OneOfEach)
            .map_err(|error| not_understood(format_args!("{}: {error}", init.node)))?;
        while client.wait(TICK).map_err(Failure::from)?.is_none() {
            interrupts.check()?;
            if Instant::now() > until {
                let missing = all.iter().map(|group| run.places.group_name(group).to_owned());
                let missing = missing.collect();
                return Err(Failure::from(StartError::NotMet { missing }).into());
            }
        }
        let (waiting, in_order) = (VecDeque::new(), InOrder::default());
        Ok(Self { client, features, waiting, in_order, payload: Vec::new() })
    }

    /// Queues a message behind those that are waiting.
    fn take(&mut self, message: String, groups: &[String], bytes: usize) -> Result<(), Failure> {
        let names = groups.iter().map(String::as_str);
        match addressed(self.client.places(), names) {
            Ok((first, destinations)) => {
                self.waiting.push_back(WaitingMessage { message, bytes, first, destinations });
                Ok(())
            }
            Err(failure) => refuse(&message, "not-a-sender", failure.text()),
        }
    }

    /// Sends the messages that may be sent now, in order.
    fn send_waiting(&mut self) -> Result<(), Failure> {
        while let Some(next) = self.waiting.pop_front() {
            let WaitingMessage { message, bytes, first, destinations } = &next;
            if !self.in_order.may_go(*first, *destinations) {
                self.waiting.push_front(next);
                break;
            }
            self.payload.resize(*bytes, 0);
            payload::fill(&mut self.payload, message);
            match self.client.multicast(*destinations, &self.payload, Answers::OneOfEach) {
                Ok(id) => {
                    self.in_order.went(id, *first, *destinations);
                    answer(&Line::Ok { message: Some(message) })?;
                }
                Err(SendError::Full) => {
                    self.waiting.push_front(next);
                    break;
                }
                Err(error) => refuse(message, code_of(error), &error.to_string())?,
            }
        }
        Ok(())
    }

    /// Sends the accepted messages and waits for answers, for at most `patience`.
    fn take_answers(&mut self, patience: Duration) -> Result<(), Failure> {
        let patience = if self.in_order.is_empty() { Duration::ZERO } else { patience };
        let mut answered = self.client.wait(patience);
        loop {
            match answered {
                Ok(Some(message)) => self.in_order.answered(message.id),
                Ok(None) => return Ok(()),
                Err(error) => {
                    answer(&Line::Halt { reason: "halted", text: &error.to_string() })?;
                    return Err(error.into());
                }
            }
            answered = Ok(self.client.poll());
        }
    }

    /// Waits a short time for messages in flight.
    fn stop(&mut self) -> Result<(), Failure> {
        let started = Instant::now();
        while !self.in_order.is_empty() && started.elapsed() < SETTLE {
            self.take_answers(LOOK)?;
        }
        answer(&Line::Halt { reason: "done", text: "" })
    }
}

impl NodeUnderTest for ClientUnderTest {
    fn serve(
        mut self: Box<Self>,
        commands: &Commands,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        greet(&self.features)?;
        loop {
            let is_at_rest = self.in_order.is_empty() && self.waiting.is_empty();
            let patience = if is_at_rest { LOOK } else { Duration::ZERO };
            let command = next(commands, interrupts, patience)?;
            let is_asked = command.is_some();
            match command {
                Some(Ok(Command::Multicast { message, groups, bytes })) => {
                    self.take(message, &groups, bytes)?;
                }
                Some(Ok(Command::Stop)) => return self.stop(),
                Some(Ok(_)) => answer_unknown()?,
                Some(Err(failure)) => return Err(failure),
                None => {}
            }
            self.send_waiting()?;
            // All commands of a burst are taken before waiting for their answers.
            self.take_answers(if is_asked { Duration::ZERO } else { LOOK })?;
        }
    }
}

/// Returns the group that orders messages for these groups first, and the groups.
fn addressed<'n>(
    places: &Places,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<(GroupId, Destinations), Failure> {
    let destinations = places.destinations(names)?;
    let first = places.overlay().lowest_common_ancestor(destinations);
    first.map(|first| (first, destinations)).ok_or_else(|| not_understood("no destination"))
}

fn refuse(message: &str, code: &str, text: &str) -> Result<(), Failure> {
    answer(&Line::Error { code, definite: true, message: Some(message), text })
}

/// Returns the protocol's code for an error.
const fn code_of(error: SendError) -> &'static str {
    match error {
        SendError::TooLong => "too-large",
        SendError::Full => "full",
        SendError::NoDestination | SendError::UnknownDestination => "not-a-sender",
        SendError::Closed => "stopped",
    }
}
