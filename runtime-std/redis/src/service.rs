//! A thread that serves connections. One thread serves thousands: it waits for all of them at once.
//!
//! A turn reads from every connection that has sent something, and proposes everything that it read
//! as one command, or as few as fit. The answers arrive in the order of the proposals, so only the
//! first unanswered one is looked at.
//!
//! The events come from epoll through `rustix`, which the project has already. An asynchronous
//! runtime would bring packages and tasks, but there is only one thing to wait for; a thread per
//! client would take 10,000 stacks.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use tramontane::typed::{Durability, Proposal};
use tramontane::{NotAnswered, Replicated};

use crate::batch::{Batch, CollectedBatch, RequestRun};
use crate::connection::{ClientConnection, Closed};
use crate::facts::ServerFacts;
use crate::inbox::{InboxContents, ThreadInbox};
use crate::limits::ServerLimits;
use crate::machine::{Database, RunReplies};
use crate::outgoing::BatchCollector;
use crate::process;
use crate::session::ClientSession;
use crate::slots::Slots;
use crate::subscriptions::{self, Subscriber};
use crate::surroundings::Surroundings;
use crate::wakeup::Wakeup;

/// Tokens that are not connections.
const WAKEUP: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// The number of events that one turn takes.
const EVENTS: usize = 512;

/// The number of bytes that are read at once from a connection.
const READ_BYTES: usize = 64 << 10;

/// The number of connections that one turn accepts.
const ACCEPTS: usize = 128;

/// The longest sleep, after which accepting is tried again.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The parts that all threads of a server share.
pub(crate) struct ServerShared {
    pub(crate) replicated: Replicated<Database>,
    /// The places in which requests must be durable before they are answered.
    pub(crate) durability: Option<Durability>,
    pub(crate) limits: ServerLimits,
    pub(crate) facts: ServerFacts,
    /// Whether the server ends once everything has been answered.
    pub(crate) is_ending: AtomicBool,
}

/// A proposed batch.
struct InFlight {
    proposal: Proposal<Vec<RunReplies>>,
    runs: Vec<RequestRun>,
    is_slow: bool,
}

/// A thread with connections.
pub(crate) struct ClientService {
    shared: Arc<ServerShared>,
    number: usize,
    inbox: Arc<ThreadInbox>,
    /// The inboxes of all threads, for the thread that accepts.
    inboxes: Vec<Arc<ThreadInbox>>,
    wakeup: Arc<Wakeup>,
    waker: Waker,
    epoll: std::os::fd::OwnedFd,
    listener: Option<TcpListener>,
    /// Whether connections may wait to be accepted.
    is_accepting: bool,
    /// Whether the last turn accepted as many connections as it could.
    has_more_to_accept: bool,
    accepted: usize,
    slots: Slots,
    /// The connections that are served in the next turn.
    ready: Vec<u64>,
    outgoing: BatchCollector,
    in_flight: VecDeque<InFlight>,
    scratch: Vec<u8>,
}

impl ClientService {
    /// Creates a thread's state.
    pub(crate) fn new(
        shared: Arc<ServerShared>,
        inbox: Arc<ThreadInbox>,
        wakeup: Arc<Wakeup>,
        inboxes: Vec<Arc<ThreadInbox>>,
        listener: Option<TcpListener>,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let events = epoll::EventFlags::IN;
        epoll::add(&epoll, &wakeup, epoll::EventData::new_u64(WAKEUP), events)?;
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
            let events = events | epoll::EventFlags::ET;
            epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), events)?;
        }
        let outgoing = BatchCollector::new(shared.limits.batch_max);
        let number = subscriptions::of_process().add_thread(Arc::clone(&inbox));
        let waker = Waker::from(Arc::clone(&wakeup));
        Ok(Self {
            shared,
            number,
            inbox,
            inboxes,
            wakeup,
            waker,
            epoll,
            listener,
            is_accepting: true,
            has_more_to_accept: false,
            accepted: 0,
            slots: Slots::default(),
            ready: Vec::new(),
            outgoing,
            in_flight: VecDeque::new(),
            scratch: vec![0; READ_BYTES],
        })
    }

    /// Serves until the server ends.
    pub(crate) fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let is_ending = self.shared.is_ending.load(Ordering::SeqCst);
            self.wait(&mut events, is_ending);
            for event in events.drain(..) {
                self.note(event);
            }
            if is_ending {
                self.listener = None;
            }
            self.accept();
            let received = self.inbox.take();
            self.receive(received);
            self.answer();
            for token in std::mem::take(&mut self.ready) {
                self.serve(token);
            }
            self.propose();
            let is_idle = self.in_flight.is_empty() && !self.outgoing.slow.has_next_batch();
            if is_ending && is_idle {
                // The last answers. Requests that arrive from now on are not read.
                for token in std::mem::take(&mut self.ready) {
                    if let Some(connection) = self.slots.get_mut(token) {
                        let _ = connection.flush(usize::MAX);
                    }
                }
                return;
            }
        }
    }

    /// Waits for events.
    fn wait(&self, events: &mut Vec<epoll::Event>, is_ending: bool) {
        let has_work = !self.ready.is_empty()
            || self.has_more_to_accept
            || self.outgoing.slow.has_next_batch();
        let may_sleep = !has_work && (!is_ending || !self.in_flight.is_empty());
        let timeout = match may_sleep && self.wakeup.begin_sleep() {
            true => TICK,
            false => Timespec { tv_sec: 0, tv_nsec: 0 },
        };
        // An interrupted wait has no events.
        let _ = epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout));
        self.wakeup.end_sleep();
    }

    fn note(&mut self, event: epoll::Event) {
        let flags = event.flags;
        match event.data.u64() {
            WAKEUP => self.wakeup.drain(),
            LISTENER => self.is_accepting = true,
            token => {
                let Some(connection) = self.slots.get_mut(token) else { return };
                use epoll::EventFlags as Flags;
                let hung_up = flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
                connection.is_hung_up |= hung_up;
                connection.is_readable |= hung_up || flags.contains(Flags::IN);
                connection.is_writable |= flags.contains(Flags::OUT);
                self.list(token);
            }
        }
    }

    /// Lists a connection to be served.
    fn list(&mut self, token: u64) {
        if let Some(connection) = self.slots.get_mut(token)
            && !connection.is_listed
        {
            connection.is_listed = true;
            self.ready.push(token);
        }
    }

    /// Accepts connections, and gives each thread its share.
    fn accept(&mut self) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.is_accepting) else { return };
        let facts = &self.shared.facts;
        self.has_more_to_accept = false;
        for _ in 0..ACCEPTS {
            match listener.accept() {
                Ok((stream, _)) => {
                    facts.connections.fetch_add(1, Ordering::Relaxed);
                    if facts.clients.load(Ordering::Relaxed) >= facts.clients_max {
                        facts.refused_connections.fetch_add(1, Ordering::Relaxed);
                        refuse(stream);
                        continue;
                    }
                    facts.clients.fetch_add(1, Ordering::Relaxed);
                    let thread = self.accepted % self.inboxes.len().max(1);
                    self.accepted += 1;
                    if let Some(inbox) = self.inboxes.get(thread) {
                        inbox.push_stream(stream);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_accepting = false;
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // No descriptors, or a client that has gone. A later turn tries again.
                Err(_) => return,
            }
        }
        self.has_more_to_accept = true;
    }

    /// Takes what other threads have handed over.
    fn receive(&mut self, received: InboxContents) {
        for stream in received.streams {
            if self.add(stream).is_err() {
                self.shared.facts.clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
        for (token, message) in received.messages {
            if let Some(connection) = self.slots.get_mut(token) {
                connection.add_message(&message);
                self.list(token);
            }
        }
        received.overrun.into_iter().for_each(|token| self.close(token));
    }

    fn add(&mut self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let (thread, threads) = (self.number, self.inboxes.len().max(1) as u64);
        let token = self.slots.insert(|token| {
            let subscriber = Subscriber { thread, token };
            // Different for all connections of this process.
            let id = 1 + thread as u64 + token * threads;
            ClientConnection::new(stream, ClientSession::new(subscriber, id))
        });
        if let Some(connection) = self.slots.get_mut(token) {
            use epoll::EventFlags as Flags;
            let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
            let data = epoll::EventData::new_u64(token);
            if let Err(error) = epoll::add(&self.epoll, connection.stream(), data, flags) {
                self.slots.remove(token);
                return Err(error.into());
            }
        }
        self.list(token);
        Ok(())
    }

    fn close(&mut self, token: u64) {
        // Closing the socket removes it from epoll too.
        if let Some(connection) = self.slots.remove(token) {
            let facts = &self.shared.facts;
            facts.clients.fetch_sub(1, Ordering::Relaxed);
            facts.memory.fetch_sub(connection.counted, Ordering::Relaxed);
            if connection.has_slow() {
                self.outgoing.slow.remove(token);
            }
        }
    }

    /// Hands the answers that have arrived to their connections.
    fn answer(&mut self) {
        let waker = self.waker.clone();
        let mut context = Context::from_waker(&waker);
        while let Some(first) = self.in_flight.front_mut() {
            let Poll::Ready(answer) = Pin::new(&mut first.proposal).poll(&mut context) else {
                return;
            };
            let Some(InFlight { runs, is_slow, .. }) = self.in_flight.pop_front() else { return };
            if is_slow {
                self.outgoing.slow.end_batch();
            }
            match answer {
                Ok(replies) => {
                    let mut rests = Vec::new();
                    for (run, mut replies) in runs.into_iter().zip(replies) {
                        let Some(connection) = self.slots.get_mut(run.token) else { continue };
                        if replies.rest_count > 0 && !replies.is_too_large {
                            connection.add_part(replies.bytes);
                            let rest = std::mem::take(&mut replies.rest);
                            rests.push((run.token, rest, replies.rest_count));
                            self.list(run.token);
                            continue;
                        }
                        match connection.answer(replies) {
                            Ok(()) => self.list(run.token),
                            Err(Closed) => self.close(run.token),
                        }
                    }
                    self.outgoing.slow.push_rests(rests);
                }
                Err(why) => {
                    let text = failure(&why);
                    for run in runs {
                        if let Some(connection) = self.slots.get_mut(run.token) {
                            connection.fail(run.requests, &text);
                            self.list(run.token);
                        }
                    }
                }
            }
        }
    }

    /// Sends a connection what it is owed, and reads from it.
    fn serve(&mut self, token: u64) {
        let Some(connection) = self.slots.get_mut(token) else { return };
        connection.is_listed = false;
        let limits = &self.shared.limits;
        let facts = &self.shared.facts;
        let mut around = Surroundings { outgoing: &mut self.outgoing, limits, facts, requests: 0 };
        let served = connection
            .flush(limits.unsent_max)
            .and_then(|()| connection.read(&mut self.scratch, &mut around))
            .and_then(|()| connection.flush(limits.unsent_max));
        facts.requests.fetch_add(around.requests, Ordering::Relaxed);
        let (bytes, counted) = (connection.bytes(), connection.counted);
        connection.counted = bytes;
        let total = if bytes >= counted {
            facts.memory.fetch_add(bytes - counted, Ordering::Relaxed) + (bytes - counted)
        } else {
            facts.memory.fetch_sub(counted - bytes, Ordering::Relaxed) - (counted - bytes)
        };
        let is_too_much = total > limits.memory_max && bytes > READ_BYTES;
        if served.is_err() || is_too_much {
            self.close(token);
        } else if connection.is_ready() {
            self.list(token);
        }
    }

    /// Proposes the requests that this turn has read.
    fn propose(&mut self) {
        let batches = self.outgoing.take();
        if batches.is_empty() {
            return;
        }
        let shared = &self.shared;
        shared.facts.batches.fetch_add(batches.len() as u64, Ordering::Relaxed);
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
        for CollectedBatch { requests, runs, is_slow } in batches {
            let origin = process::incarnation();
            let batch = Batch { origin, now_ms, requests: requests.into_text() };
            let proposal = match shared.durability {
                Some(durability) => shared.replicated.propose_durable(batch, durability),
                None => shared.replicated.propose(batch),
            };
            self.in_flight.push_back(InFlight { proposal, runs, is_slow });
        }
        // Registers the wakeup for the first answer.
        self.answer();
    }
}

impl Drop for ClientService {
    fn drop(&mut self) {
        self.slots.tokens().into_iter().for_each(|token| self.close(token));
    }
}

/// Tells a client that there are too many.
fn refuse(stream: TcpStream) {
    use std::io::Write as _;
    // If the client does not take it, it sees the end of the connection.
    let _ = stream.set_nonblocking(true);
    let _ = (&stream).write_all(b"-ERR max number of clients reached\r\n");
}

/// Returns the error reply to requests that the group has not answered.
fn failure(why: &NotAnswered) -> String {
    match why {
        NotAnswered::Unknown(_) | NotAnswered::NotDurable(_) | NotAnswered::TimedOut(_) => {
            format!("UNKNOWN the request may have been executed: {why}")
        }
        _ => format!("NOTEXECUTED the request was not executed: {why}"),
    }
}
