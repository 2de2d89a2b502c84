//! How a member supplies a node that joins: the state of a moment, and everything that was delivered since (VIE-10).
//!
//! The thread that drives the member puts what is delivered into a queue; a thread of its own takes it out and sends it.
//! So the group goes on meanwhile, but for the call of [`Replica::snapshot`](super::Replica::snapshot).
//!
//! # Invariants
//! - What a joiner gets of a subgroup is its state at a place, then all messages from that place on, each once and in
//!   order, then word of the view that has the joiner as a member; nothing is missing in between.
//! - The group is asked to let the joiner in when that is close behind. While it catches up to that, the member waits for it
//!   (`queue`): a joiner that is slower than the group would never be.

use std::time::Duration;

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_mesh::{Talk, TalkError};

use super::queue::{Ended, Queue, Sink, Supplied};
use super::request::{Request, Requests};
use super::said::{JoinerAsks, JoinerHears};
use super::status::Board;
use super::talking::{hear, say};
use super::view::WireView;

/// How long a joiner may take nothing.
const STALL: Duration = Duration::from_secs(30);

/// How long the member may leave a request without an answer: an upcall may be under way.
const ANSWER: Duration = Duration::from_secs(60);

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

impl From<Ended> for SupplyError {
    fn from(_: Ended) -> Self {
        Self::Ended
    }
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
    let supplied = supply(node, talk, &mut queue, leads, requests);
    if supplied.is_err() {
        requests.ask(Request::Gone { node, led: leads });
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
        // Each once: the application is asked for a state for each.
        JoinerAsks::Supply { subgroups, leads } if subgroups.is_sorted_by(|one, next| one < next) => {
            Ok((subgroups, leads))
        }
        _ => Err(SupplyError::Garbled),
    }
}

/// Sends states and messages, until the joiner is a member and says so.
fn supply(
    node: NodeId,
    talk: &mut Talk,
    queue: &mut Queue,
    leads: bool,
    requests: &Requests,
) -> Result<(), SupplyError> {
    let states = match queue.take(ANSWER, || !talk.is_open())?.ok_or(SupplyError::Ended)? {
        Supplied::States(states) => states,
        Supplied::NotNow(why) => return Ok(say(talk, &JoinerHears::NotNow(why), STALL)?),
        _ => return Err(SupplyError::Ended),
    };
    for (subgroup, mut state) in states {
        say(talk, &JoinerHears::State { subgroup: subgroup.0 }, STALL)?;
        talk.send_stream(&mut state, STALL)?;
    }
    let mut supplier = Supplier { talk, queue, view: None };
    // What came meanwhile. What comes from now on may come for as long as the joiner takes over other states.
    let missed = supplier.queue.bytes();
    supplier.send_until(|sent, queue| sent >= missed || queue.is_close())?;
    if supplier.view.is_none() {
        say(supplier.talk, &JoinerHears::CaughtUp, STALL)?;
        if leads {
            match hear(supplier.talk, ASK_MAX, RESTORE_MAX)? {
                JoinerAsks::Ready => {}
                _ => return Err(SupplyError::Garbled),
            }
            supplier.queue.catches_up(true);
            supplier.send_until(|_, queue| queue.is_close())?;
        }
    }
    if leads && supplier.view.is_none() {
        requests.ask(Request::Wish { node });
    }
    supplier.send_until(|_, _| false)?;
    let Some(view) = supplier.view else { return Err(SupplyError::Ended) };
    say(talk, &JoinerHears::Member(view), STALL)?;
    if !leads {
        return Ok(());
    }
    // Until it is up its end is known by this talk alone.
    match hear(talk, ASK_MAX, STALL)? {
        JoinerAsks::Up => Ok(()),
        _ => Err(SupplyError::Garbled),
    }
}

/// A joiner whose states are through.
struct Supplier<'s> {
    talk: &'s mut Talk,
    queue: &'s mut Queue,
    /// The view that has it, once there is one: nothing comes behind it.
    view: Option<WireView>,
}

impl Supplier<'_> {
    /// Sends messages as they come, until the joiner is a member, or `is_enough` of the bytes that were sent and of what waits.
    fn send_until(&mut self, is_enough: impl Fn(usize, &Queue) -> bool) -> Result<(), SupplyError> {
        let mut sent = 0;
        while self.view.is_none() && !is_enough(sent, self.queue) {
            match self.queue.take(STALL, || !self.talk.is_open())? {
                Some(Supplied::Message(message, cost)) => {
                    let (messages, bytes) = self.queue.take_more(message, cost);
                    say(self.talk, &JoinerHears::Messages(messages), STALL)?;
                    self.queue.release(bytes);
                    sent += bytes;
                }
                Some(Supplied::Member(view)) => self.view = Some(WireView::from(&view)),
                Some(Supplied::GivenUp) => return Err(SupplyError::TooSlow),
                Some(Supplied::NotNow(_) | Supplied::States(_)) => return Err(SupplyError::Ended),
                None if !self.talk.is_open() => return Err(TalkError::Closed.into()),
                // A group in which nothing happens.
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    use tramontane_mesh::{Door, Identity, Listener, Purpose, visit};

    use super::*;

    /// Time that no joiner is given before it has said what it wants.
    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn who_comes_to_join_and_says_nothing_does_not_keep_its_place() {
        let identity = |node| Identity { node: NodeId(node), incarnation: 1, digest: 7 };
        let listener = Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let (sender, ended) = channel();
        let door = Door::open(listener, identity(1), [NodeId(2)], None, move |mut visitor| {
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
