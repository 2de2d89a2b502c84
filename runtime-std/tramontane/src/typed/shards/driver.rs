//! The thread that sends a client's calls, and takes their answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tramontane_runtime::shards::{
    Answered, Answers, Client, ClientError, Destinations, StartOptions,
};

use super::call::{CallEntry, ShardAnswer};
use super::call_queue::{CallQueue, SentCall, WaitingCall};
use super::majorities::Majorities;

/// The time after which a wait for work starts over.
const AGAIN: Duration = Duration::from_secs(1);

/// The time after which lost answers are looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Time limit for connecting anew, and the pause before the next attempt.
const RECONNECT: Duration = Duration::from_secs(2);

/// Starts the thread. It ends when the client has left or ended, and then no call is left.
pub(super) fn start(client: Client, queue: &Arc<CallQueue>) -> std::io::Result<JoinHandle<()>> {
    let queue = Arc::clone(queue);
    std::thread::Builder::new().name("tramontane-calls".into()).spawn(move || {
        let driver = CallDriver {
            client,
            queue: &queue,
            incomplete: Vec::new(),
            majorities: Majorities::new(queue.limits.lease),
            reconnects_from: None,
        };
        // A waker may panic, and the other callers must not wait for ever.
        let why = catch_unwind(AssertUnwindSafe(|| driver.run()));
        queue.end(&why.unwrap_or(ClientError::Left));
    })
}

struct CallDriver<'q> {
    client: Client,
    queue: &'q CallQueue,
    /// Answered messages, for which the replicas of a group that had replied were lost before their
    /// answers were read. The other replicas reply too. Until then nothing is sent, because that
    /// could replace the answers.
    incomplete: Vec<(Answered, Arc<CallEntry>)>,
    majorities: Majorities,
    /// The time before which the client does not connect anew.
    reconnects_from: Option<Instant>,
}

impl CallDriver<'_> {
    fn run(mut self) -> ClientError {
        loop {
            match self.turn() {
                Ok(None) => {}
                Ok(Some(until)) => {
                    let left = until.saturating_duration_since(Instant::now());
                    return self.client.leave(left).err().unwrap_or(ClientError::Left);
                }
                Err(why) => return why,
            }
        }
    }

    /// Sends what there is room for, and takes answers. Returns the time limit for leaving, once
    /// the client should leave.
    fn turn(&mut self) -> Result<Option<Instant>, ClientError> {
        let queue = self.queue;
        let down = self.majorities.down(Instant::now(), || self.client.without_majority());
        if down.count() > 0 {
            queue.end_calls_to(down);
            self.replace_blocked_client();
        }
        self.send()?;
        let (timeout, has_room) = match self.incomplete.is_empty() {
            true => (
                self.majorities.look_interval().unwrap_or(AGAIN),
                self.client.under_way() < queue.limits.window,
            ),
            false => (LOOK_AGAIN, false),
        };
        let is_leaving = queue.lock().leaves_until.is_some();
        self.client.step_until(
            || {
                let state = queue.lock();
                let leaves = !is_leaving && state.leaves_until.is_some();
                leaves || (has_room && !state.waiting.is_empty())
            },
            if is_leaving { LOOK_AGAIN } else { timeout },
        )?;
        for (answered, call) in std::mem::take(&mut self.incomplete) {
            self.give(answered, call);
        }
        while let Some(answered) = self.client.poll() {
            let call =
                queue.lock().in_flight.get(&answered.id.number).map(|sent| Arc::clone(&sent.call));
            if let Some(call) = call {
                self.give(answered, call);
            }
        }
        let state = queue.lock();
        let is_over = |until: &Instant| state.in_flight.is_empty() || Instant::now() >= *until;
        Ok(state.leaves_until.filter(is_over))
    }

    /// Connects as another client, if messages to groups without a majority fill the window of this
    /// one, and no other message is in flight. A message stays in its client's window until it is
    /// answered, because only its client has it until a majority of a group does.
    fn replace_blocked_client(&mut self) {
        let CallQueue { limits, .. } = self.queue;
        let state = self.queue.lock();
        let is_blocked = self.client.under_way() >= limits.window
            && self.incomplete.is_empty()
            && state.in_flight.is_empty()
            && !state.waiting.is_empty()
            && state.leaves_until.is_none();
        drop(state);
        let now = Instant::now();
        if !is_blocked || self.reconnects_from.is_some_and(|at| now < at) {
            return;
        }
        let without = self.client.without_majority();
        let with = limits.places.overlay().all().iter().filter(|group| !without.contains(*group));
        let with = with.fold(Destinations::default(), Destinations::with);
        let mut options = StartOptions::default();
        options.time_limit = RECONNECT;
        match Client::connect(&limits.description, with, options) {
            Ok(client) => {
                self.queue.set_waker(client.waker());
                // The earlier client is dropped, and its groups forget it after the lease.
                self.client = client;
            }
            // The root group, which gives clients their places, has no majority, or all places are
            // taken.
            Err(_) => self.reconnects_from = Some(now + RECONNECT),
        }
    }

    fn send(&mut self) -> Result<(), ClientError> {
        while self.incomplete.is_empty() && self.client.under_way() < self.queue.limits.window {
            let mut state = self.queue.lock();
            let Some(WaitingCall { groups, command, call }) = state.take() else { break };
            match self.client.multicast(groups, &command, Answers::OneOfEach) {
                Ok(id) => {
                    let path = self.queue.limits.places.path(groups);
                    state.in_flight.insert(id.number, SentCall { path, call });
                }
                // Everything else has been checked.
                Err(_) => {
                    drop(state);
                    call.give(Err(super::NoAnswers::NotSent(ClientError::Closed)));
                    return Err(ClientError::Closed);
                }
            }
        }
        Ok(())
    }

    /// Ends a call with its answers, if they are all here.
    fn give(&mut self, answered: Answered, call: Arc<CallEntry>) {
        match self.answers(&answered) {
            Some(answers) => {
                self.queue.lock().in_flight.remove(&answered.id.number);
                call.give(Ok(answers));
            }
            None => self.incomplete.push((answered, call)),
        }
    }

    /// Returns the answer of any replica of each group, because all of them are the same.
    fn answers(&self, answered: &Answered) -> Option<Vec<ShardAnswer>> {
        let deliveries = self.client.deliveries(answered);
        let limit = self.queue.limits.answer_max as usize;
        let of_group = |group| {
            let delivery = deliveries.iter().find(|delivery| delivery.replica.group == group)?;
            let mut bytes = vec![0; limit];
            let length = self.client.answer(answered, delivery.replica, &mut bytes)?;
            bytes.truncate(usize::try_from(length).unwrap_or(limit));
            Some(ShardAnswer { group, byte: delivery.answer, length, bytes })
        };
        answered.destinations.iter().map(of_group).collect()
    }
}
