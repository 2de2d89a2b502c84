//! How a member supplies a node that joins: the state of a moment, and everything that was delivered since (VIE-10).
//!
//! The thread that drives the member puts what is delivered into a queue; a thread of its own takes it out and sends it.
//! So the group goes on meanwhile, but for the call of [`Replica::snapshot`](super::Replica::snapshot).
//!
//! # Invariants
//! - What a joiner gets of a subgroup is its state at a place, then all messages from that place on, each once and in
//!   order, then word of the view that has the joiner as a member; nothing is missing in between.
//! - A queue holds at most [`BACKLOG_MAX`] bytes of messages, and as much more as the group's large messages can be under way
//!   at a time; what is being sent counts until it is taken. A joiner that is slower than the group is given up.
//! - A message is copied once, whoever is supplied with it.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_mesh::{Talk, TalkError};

use super::request::{Request, Requests};
use super::said::{JoinerAsks, JoinerHears, Shared};
use super::status::Board;
use super::talking::{hear, say};
use super::view::{View, WireView};

/// Messages that may wait for one joiner, in bytes, beside large ones.
const BACKLOG_MAX: usize = 256 << 20;

/// What one message costs beside its bytes.
const MESSAGE_COST: usize = 64;

/// Messages are sent together up to so many bytes, and one message: one by one, a joiner of a busy group never catches up.
pub(super) const TOGETHER_MAX: usize = 256 << 10;

/// How long a joiner may take nothing.
const STALL: Duration = Duration::from_secs(30);

/// How long the member may leave a request without an answer: an upcall may be under way.
const ANSWER: Duration = Duration::from_secs(60);

/// Between two looks whether a joiner is still there.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// What the member puts into a joiner's queue.
pub(super) enum Supplied {
    NotNow(String),
    /// States as they were when the queue began.
    States(Vec<(SubgroupId, Box<dyn Read + Send>)>),
    Message(Shared, usize),
    Member(View),
    /// The joiner was too slow.
    GivenUp,
}

/// The end of a joiner's queue that the member has.
#[derive(Clone)]
pub(super) struct Sink {
    sender: Sender<Supplied>,
    backlog: Arc<AtomicUsize>,
    backlog_max: usize,
}

impl Sink {
    /// Both ends of a queue.
    fn new() -> (Self, Queue) {
        let (sender, receiver) = channel();
        let sink = Self { sender, backlog: Arc::default(), backlog_max: BACKLOG_MAX };
        let queue = Queue { receiver, backlog: Arc::clone(&sink.backlog), held: None };
        (sink, queue)
    }

    /// The same with room for so many bytes of large messages.
    pub(super) fn with_large(mut self, bytes: usize) -> Self {
        self.backlog_max = self.backlog_max.saturating_add(bytes);
        self
    }

    /// Puts something in. False if nobody takes it any more.
    pub(super) fn put(&self, supplied: Supplied) -> bool {
        self.sender.send(supplied).is_ok()
    }

    /// Puts a message in. False if the joiner is gone, or too slow.
    pub(super) fn put_message(&self, message: &Shared) -> bool {
        let cost = message.payload.len() + MESSAGE_COST;
        // Nobody else adds to it.
        if self.backlog.load(Ordering::Relaxed).saturating_add(cost) > self.backlog_max {
            self.put(Supplied::GivenUp);
            return false;
        }
        self.backlog.fetch_add(cost, Ordering::Relaxed);
        self.put(Supplied::Message(message.clone(), cost))
    }
}

/// Why a joiner is not supplied any more.
#[derive(Debug, thiserror::Error)]
enum SupplyError {
    #[error(transparent)]
    Talk(#[from] TalkError),
    #[error("it said what no joiner says")]
    Garbled,
    #[error("this member has ended")]
    Ended,
    #[error("it is too slow")]
    TooSlow,
}

/// The longest thing that a joiner says.
const ASK_MAX: u64 = 1 << 16;

/// How long a joiner may take to its first word: it has nothing to do before.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// How long it may take from there to its wish, while it looks for others that supply it.
const CHOICE: Duration = Duration::from_secs(60);

/// How long a joiner may take to restore what it was sent, before it says so.
const RESTORE_MAX: Duration = Duration::from_secs(3600);

/// Serves one joiner, to its end. Runs in a thread of its own.
pub(super) fn serve(node: NodeId, mut talk: Talk, board: &Board, requests: &Requests) {
    // Whoever goes before it is supplied changes nothing: it may be a second process of a member's id.
    if let Err(error) = converse(node, &mut talk, board, requests) {
        tracing::info!(%node, %error, "a node that wants to join is not supplied");
    }
}

fn converse(node: NodeId, talk: &mut Talk, board: &Board, requests: &Requests) -> Result<(), SupplyError> {
    let (subgroups, leads) = greet(talk, board)?;
    let subgroups = subgroups.into_iter().map(SubgroupId).collect();
    let (sink, mut queue) = Sink::new();
    if !requests.ask(Request::Supply { node, subgroups, sink }) {
        return Err(SupplyError::Ended);
    }
    let mut was_let_in = false;
    let supplied = supply(node, talk, &mut queue, leads, requests, &mut was_let_in);
    if supplied.is_err() {
        requests.ask(Request::Gone { node, was_let_in });
    }
    supplied
}

/// A joiner's first words, each once: what it wants, and whether this member leads its join. Whoever says no more has its
/// place at the door for so long, and no longer.
fn greet(talk: &mut Talk, board: &Board) -> Result<(Vec<u16>, bool), SupplyError> {
    match hear(talk, ASK_MAX, FIRST_WORD)? {
        JoinerAsks::Welcome => {}
        _ => return Err(SupplyError::Garbled),
    }
    let view = board.view().ok_or(SupplyError::Ended)?;
    say(talk, &JoinerHears::View(WireView::from(&*view)), STALL)?;
    match hear(talk, ASK_MAX, CHOICE)? {
        JoinerAsks::Supply { subgroups, leads } => Ok((subgroups, leads)),
        _ => Err(SupplyError::Garbled),
    }
}

/// The end of a queue that is taken from.
struct Queue {
    receiver: Receiver<Supplied>,
    backlog: Arc<AtomicUsize>,
    /// What came behind the last messages.
    held: Option<Supplied>,
}

impl Queue {
    /// That message, and those behind it, as far as they go together and are there; and what they cost.
    fn take_more(&mut self, first: Shared, cost: usize) -> (Vec<Shared>, usize) {
        let (mut taken, mut bytes) = (vec![first], cost);
        while bytes < TOGETHER_MAX {
            match self.receiver.try_recv() {
                Ok(Supplied::Message(message, cost)) => {
                    taken.push(message);
                    bytes += cost;
                }
                Ok(other) => {
                    self.held = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        (taken, bytes)
    }

    /// What cost so much is held no more.
    fn release(&self, bytes: usize) {
        self.backlog.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The next thing, or nothing if none comes at once.
    fn take(&mut self, talk: &Talk, patience: Duration) -> Result<Option<Supplied>, SupplyError> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        let until = Instant::now() + patience;
        loop {
            match self.receiver.recv_timeout(LOOK_PAUSE.min(patience)) {
                Ok(supplied) => return Ok(Some(supplied)),
                Err(RecvTimeoutError::Disconnected) => return Err(SupplyError::Ended),
                Err(RecvTimeoutError::Timeout) if !talk.is_open() => return Err(TalkError::Closed.into()),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Sends states and messages, until the joiner is a member and says so.
fn supply(
    node: NodeId,
    talk: &mut Talk,
    queue: &mut Queue,
    leads: bool,
    requests: &Requests,
    was_let_in: &mut bool,
) -> Result<(), SupplyError> {
    let states = match queue.take(talk, ANSWER)?.ok_or(SupplyError::Ended)? {
        Supplied::States(states) => states,
        Supplied::NotNow(why) => return Ok(say(talk, &JoinerHears::NotNow(why), STALL)?),
        _ => return Err(SupplyError::Ended),
    };
    for (subgroup, mut state) in states {
        say(talk, &JoinerHears::State { subgroup: subgroup.0 }, STALL)?;
        talk.send_stream(&mut state, STALL)?;
    }
    let mut is_caught_up = false;
    loop {
        let patience = if is_caught_up { STALL } else { Duration::ZERO };
        match queue.take(talk, patience)? {
            Some(Supplied::Message(message, cost)) => {
                let (messages, bytes) = queue.take_more(message, cost);
                say(talk, &JoinerHears::Messages(messages), STALL)?;
                queue.release(bytes);
            }
            Some(Supplied::Member(view)) => {
                say(talk, &JoinerHears::Member(WireView::from(&view)), STALL)?;
                if !leads {
                    return Ok(());
                }
                *was_let_in = true;
                break;
            }
            Some(Supplied::GivenUp) => return Err(SupplyError::TooSlow),
            Some(Supplied::NotNow(_) | Supplied::States(_)) => return Err(SupplyError::Ended),
            None if !is_caught_up => {
                is_caught_up = true;
                say(talk, &JoinerHears::CaughtUp, STALL)?;
                if leads {
                    match hear(talk, ASK_MAX, RESTORE_MAX)? {
                        JoinerAsks::Ready => requests.ask(Request::Wish { node }),
                        _ => return Err(SupplyError::Garbled),
                    };
                }
            }
            // A group in which nothing happens.
            None => {}
        }
    }
    // Until it is up its end is known by this talk alone.
    match hear(talk, ASK_MAX, STALL)? {
        JoinerAsks::Up => Ok(()),
        _ => Err(SupplyError::Garbled),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;

    use tramontane_mesh::{Door, Identity, Listener, Purpose, visit};

    use super::*;
    use crate::group::Message;

    fn message(payload: &[u8]) -> Shared {
        let (view, place) = (tramontane_core::ids::ViewId(1), tramontane_core::ids::Place(2));
        let (subgroup, sender) = (SubgroupId(0), NodeId(3));
        Shared::of(&Message { subgroup, view, place, sender, payload, is_replayed: false })
    }

    #[test]
    fn a_queue_never_holds_more_than_its_bound_and_queues_share_messages() {
        let one = message(&[7; 1000]);
        let cost = 1000 + MESSAGE_COST;
        let queues: Vec<_> = (0..2).map(|_| Sink::new()).collect();
        let mut held = Vec::new();
        for (mut sink, mut queue) in queues {
            sink.backlog_max = 3 * cost - 1;
            assert!(sink.put_message(&one) && sink.put_message(&one));
            let Ok(Supplied::Message(first, first_cost)) = queue.receiver.try_recv() else {
                panic!("a message")
            };
            let (messages, bytes) = queue.take_more(first, first_cost);
            assert_eq!((messages.len(), bytes), (2, 2 * cost));
            // They are being sent: there is room when they are.
            assert!(!sink.put_message(&one), "a third is too much");
            assert!(matches!(queue.receiver.try_recv(), Ok(Supplied::GivenUp)));
            queue.release(bytes);
            assert!(sink.put_message(&one));
            held.extend(messages);
        }
        assert!(held.iter().all(|message| Arc::ptr_eq(&message.0, &one.0)));
    }

    /// Where all large messages that can be under way are delivered at once, nobody is too slow for that.
    #[test]
    fn large_messages_have_room_of_their_own() {
        use crate::group::LARGE_MAX;
        let mut description = crate::group::Description::local("large", 3, 8, 16);
        let (sink, _) = Sink::new();
        let small = sink.clone().with_large(description.large_pool_bytes()).backlog_max;
        assert_eq!(small, BACKLOG_MAX);
        description.subgroups[0].large_max = LARGE_MAX;
        let window = usize::try_from(description.subgroups[0].large_window).expect("it is small");
        let all = 3 * window * (usize::try_from(LARGE_MAX).expect("it fits") + MESSAGE_COST);
        assert!(sink.with_large(description.large_pool_bytes()).backlog_max > all);
    }

    #[test]
    fn what_is_shared_is_said_as_it_was() {
        let said = JoinerHears::Messages(vec![message(b"one"), message(b"")]);
        let bytes = postcard::to_stdvec(&said).expect("bytes");
        assert_eq!(postcard::from_bytes::<JoinerHears>(&bytes).expect("the same"), said);
    }

    /// Time that no joiner is given before it has said what it wants.
    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn who_comes_to_join_and_says_nothing_does_not_keep_its_place() {
        let identity = |node| Identity { node: NodeId(node), incarnation: 1, digest: 7 };
        let listener = Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let (sender, ended) = channel();
        let door = Door::open(listener, identity(1), None, move |mut visitor| {
            // A test that ended need not know.
            let _ = sender.send(greet(&mut visitor.talk, &Board::default()));
        });
        let door = door.expect("a thread");
        let never = AtomicBool::new(false);
        let silent = visit(door.address(), &identity(2), None, Purpose::Join, LONG, &never).expect("let in");
        let error = ended.recv_timeout(LONG).expect("it was given up").expect_err("it said nothing");
        assert!(matches!(error, SupplyError::Talk(TalkError::TimeUp)), "{error}");
        drop(silent);
    }
}
