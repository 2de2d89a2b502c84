//! Supplies a joining node with the state at one moment, and with everything that has been
//! delivered since (VIE-10).
//!
//! The thread that drives the member queues the delivered messages, and a separate thread takes
//! them from the queue and sends them. So the group continues in the meantime, except during the
//! call of [`Application::snapshot`](crate::group::delivery::application::Application::snapshot).
//!
//! # Invariants
//! - For each subgroup, a joiner receives its state at a position, then all messages from there on,
//!   each once and in order, then the view that has the joiner as a member; nothing is missing in
//!   between.
//! - The group is asked to admit the joiner when it reaches all members of the view, and each of
//!   its subgroups that has members is supplied by one of them. If that is no longer so, the joiner
//!   is told, calls the new members, and finds other suppliers.
//! - The group is asked to admit the joiner when it is only slightly behind. While the joiner
//!   catches up that far, the member waits for it (`queue`); a joiner slower than the group would
//!   otherwise never get there.

use std::sync::Arc;
use std::time::Duration;

use tramontane_control::{Session, SessionError};
use tramontane_core::ids::{NodeId, SubgroupId};

use super::error::{STALL, SupplyError};
use super::queue::{Content, Queue, Sink, Supplied, SuppliedState};
use super::supply_logs;
use super::wanted::{ReadyJoiner, Wanted};
use crate::group::description::view::{View, WireView};
use crate::group::durable::comparison::SharedLogs;
use crate::group::engine::request::{Request, Requests};
use crate::group::join::admission::{Admission, SentCount};
use crate::group::join::join_messages::{JoinReply, JoinRequest};
use crate::group::status::group_status::SharedStatus;
use crate::session_messages::{receive_message, send_message};

/// Time limit for the member's answer to a request. It is long, because the member may be in an
/// upcall.
const ANSWER: Duration = Duration::from_secs(60);

/// The maximum length of a joining node's message.
const ASK_MAX: u64 = 1 << 16;

/// Time limit for a joining node's first message. It is short, because the node has nothing to do
/// before it.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// Time limit from the first message to the request, during which the node looks for other members
/// that supply it.
const CHOICE: Duration = Duration::from_secs(60);

/// Time limit for a joining node to restore what it was sent, and to report that.
const RESTORE_MAX: Duration = Duration::from_secs(3600);

/// A leaving member's answer to joining nodes.
pub(crate) const LEAVES: &str = "this member is leaving";

/// Serves one joining node until it is done, in a separate thread.
pub(crate) fn serve(
    node: NodeId,
    mut session: Session,
    board: &SharedStatus,
    requests: &Requests,
    logs: &SharedLogs,
) {
    // A node that disconnects before it is supplied changes nothing: it may be a second process
    // with a member's id.
    if let Err(error) = converse(node, &mut session, board, requests, logs) {
        tracing::info!(%node, %error, "a joining node is not supplied");
    }
}

fn converse(
    node: NodeId,
    session: &mut Session,
    board: &SharedStatus,
    requests: &Requests,
    logs: &SharedLogs,
) -> Result<(), SupplyError> {
    let (wanted, leads, reached) = greet(node, session, board, logs)?;
    let (sink, mut queue) = Sink::new();
    if !requests.ask(Request::Supply { node, wanted, sink }) {
        return Err(SupplyError::Ended);
    }
    let mut supplier = Supplier { node, session, queue: &mut queue, board, reached, news: None };
    let supplied = supplier.supply(leads, requests);
    if supplied.is_err() {
        requests.ask(Request::Gone { node, led: leads, queue: queue.id() });
    }
    supplied
}

/// Receives a joiner's first messages: what it wants, whether this member leads its join, and which
/// members it reaches. Each has a time limit, after which a silent joiner loses its slot at the
/// control server.
fn greet(
    node: NodeId,
    session: &mut Session,
    board: &SharedStatus,
    logs: &SharedLogs,
) -> Result<(Wanted, bool, Vec<NodeId>), SupplyError> {
    match receive_message(session, ASK_MAX, FIRST_WORD)? {
        JoinRequest::Welcome => {}
        _ => return Err(SupplyError::Malformed),
    }
    let view = board.view().ok_or(SupplyError::Ended)?;
    let goes = board.status().is_some_and(|status| status.is_leaving() || status.is_over());
    if goes && !view.members.contains(&node) {
        return Ok(send_message(session, &JoinReply::NotNow(LEAVES.to_owned()), STALL)
            .and(Err(SessionError::Closed))?);
    }
    send_message(session, &JoinReply::View(WireView::from(&*view)), STALL)?;
    loop {
        match receive_message(session, ASK_MAX, CHOICE)? {
            JoinRequest::Compare { subgroup, last } => {
                supply_logs::compare(session, logs.get(SubgroupId(subgroup)), last)?;
            }
            JoinRequest::Fetch { subgroup, from, to } => {
                let subgroup = SubgroupId(subgroup);
                supply_logs::fetch(session, logs.get(subgroup).as_ref(), subgroup, from, to)?;
            }
            // Each subgroup only once, because the application is asked for a state for each.
            JoinRequest::Supply { subgroups, leads, records }
                if subgroups.is_sorted_by(|one, next| one < next) =>
            {
                let subgroups = subgroups.into_iter().map(SubgroupId).collect();
                let records = records.into_iter().map(|(of, from)| (SubgroupId(of), from));
                let wanted = Wanted { subgroups, records: records.collect() };
                // The node has called all members of the view that it was sent.
                return Ok((wanted, leads, view.members.clone()));
            }
            JoinRequest::Unreached { members } => {
                return Err(unreached(node, members, &view, board));
            }
            _ => return Err(SupplyError::Malformed),
        }
    }
}

/// Publishes that a joiner does not reach these members of a view.
fn unreached(node: NodeId, members: Vec<u32>, view: &View, board: &SharedStatus) -> SupplyError {
    let members = members.into_iter().map(NodeId);
    board.put_unreached(node, members.filter(|of| view.members.contains(of)).collect());
    SupplyError::Unreached
}

/// Receives the joining node's report that it is ready. Until then, only this session shows the
/// member that led the join whether the node has ended.
fn hear_up(session: &mut Session) -> Result<(), SupplyError> {
    match receive_message(session, ASK_MAX, STALL)? {
        JoinRequest::Up => Ok(()),
        _ => Err(SupplyError::Malformed),
    }
}

/// The events that a joining node is told of after the messages.
enum News {
    /// The node is a member of a view. Nothing follows.
    Member(Arc<Admission>, Vec<SentCount>),
    /// The joiner has to call the members of a view, and find suppliers there.
    Choose(View),
}

/// Supplies one joining node with state and messages.
struct Supplier<'s> {
    node: NodeId,
    session: &'s mut Session,
    queue: &'s mut Queue,
    board: &'s SharedStatus,
    /// The members that the joiner reaches.
    reached: Vec<NodeId>,
    news: Option<News>,
}

impl Supplier<'_> {
    /// Sends states and messages, until the joiner reports that it is a member.
    fn supply(&mut self, leads: bool, requests: &Requests) -> Result<(), SupplyError> {
        let (states, news) =
            match self.queue.take(ANSWER, || !self.session.is_open())?.ok_or(SupplyError::Ended)? {
                Supplied::States(states) => (states, None),
                Supplied::Late(states, admission, sent) => {
                    (states, Some(News::Member(admission, sent)))
                }
                Supplied::NotNow(why) => {
                    return Ok(send_message(self.session, &JoinReply::NotNow(why), STALL)?);
                }
                _ => return Err(SupplyError::Ended),
            };
        self.news = news;
        for SuppliedState { subgroup, view, records, content } in states {
            match content {
                Content::State(mut content) => {
                    let state = JoinReply::State { subgroup: subgroup.0, view: view.0, records };
                    send_message(self.session, &state, STALL)?;
                    self.session.send_stream(&mut content, STALL)?;
                }
                Content::Records { log, from } => {
                    supply_logs::send_records(self.session, &log, subgroup, from, records)?;
                }
            }
        }
        // Sends only what arrived in the meantime. New messages may keep arriving for as long as
        // the joiner takes over other states.
        let missed = self.queue.bytes();
        self.send_until(|sent, queue| sent >= missed || queue.is_close())?;
        if self.news.is_none() {
            send_message(self.session, &JoinReply::CaughtUp, STALL)?;
            if leads {
                return self.lead(requests);
            }
        }
        self.send_until(|_, _| false)?;
        self.tell_admission()?;
        if leads { hear_up(self.session) } else { Ok(()) }
    }

    /// Asks the group to admit the joiner once it is ready, and again if it has to call other
    /// members, or to find other suppliers.
    fn lead(&mut self, requests: &Requests) -> Result<(), SupplyError> {
        let mut view = None;
        loop {
            let sources = match (receive_message(self.session, ASK_MAX, RESTORE_MAX)?, &view) {
                (JoinRequest::Ready { sources }, _) => sources,
                (JoinRequest::Unreached { members }, Some(view)) => {
                    return Err(unreached(self.node, members, view, self.board));
                }
                _ => return Err(SupplyError::Malformed),
            };
            self.queue.catches_up(true);
            self.send_until(|_, queue| queue.is_close())?;
            if self.news.is_none() {
                let sources = sources.into_iter().map(|(of, node)| (SubgroupId(of), NodeId(node)));
                let (node, reached) = (self.node, self.reached.clone());
                let ready = ReadyJoiner { node, sources: sources.collect(), reached };
                requests.ask(Request::Wish(ready));
                self.send_until(|_, _| false)?;
            }
            match self.news.take() {
                Some(News::Choose(chosen)) => {
                    self.queue.catches_up(false);
                    send_message(self.session, &JoinReply::Choose(WireView::from(&chosen)), STALL)?;
                    // The joiner calls these members before it reports again that it is ready.
                    self.reached.clone_from(&chosen.members);
                    view = Some(chosen);
                }
                news => {
                    self.news = news;
                    self.tell_admission()?;
                    return hear_up(self.session);
                }
            }
        }
    }

    fn tell_admission(&mut self) -> Result<(), SupplyError> {
        let Some(News::Member(admission, sent)) = self.news.take() else {
            return Err(SupplyError::Ended);
        };
        let (view, ends) = (WireView::from(&admission.view), admission.ends.clone());
        Ok(send_message(self.session, &JoinReply::Member { view, ends, sent }, STALL)?)
    }

    /// Sends messages as they arrive, until there is news, or `is_enough` accepts the number of
    /// bytes sent and the queue.
    fn send_until(&mut self, is_enough: impl Fn(usize, &Queue) -> bool) -> Result<(), SupplyError> {
        let mut sent = 0;
        while self.news.is_none() && !is_enough(sent, self.queue) {
            match self.queue.take(STALL, || !self.session.is_open())? {
                Some(Supplied::Message(message, cost)) => {
                    let (messages, bytes) = self.queue.take_more(message, cost);
                    send_message(self.session, &JoinReply::Messages(messages), STALL)?;
                    self.queue.release(bytes);
                    sent += bytes;
                }
                Some(Supplied::Member(admission, sent)) => {
                    self.news = Some(News::Member(admission, sent))
                }
                Some(Supplied::Choose(view)) => self.news = Some(News::Choose(view)),
                Some(Supplied::GivenUp) => return Err(SupplyError::TooSlow),
                Some(Supplied::NotNow(_) | Supplied::States(_) | Supplied::Late(..)) => {
                    return Err(SupplyError::Ended);
                }
                None if !self.session.is_open() => return Err(SessionError::Closed.into()),
                // No messages are being delivered.
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

    use tramontane_control::{ControlServer, Identity, Listener, Purpose, open_session};

    use super::*;

    /// Longer than a joining node may take to send what it wants.
    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn silent_joiner_frees_its_slot() {
        let identity = |node| Identity { node: NodeId(node), incarnation: 1, digest: 7 };
        let listener =
            Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let (sender, ended) = channel();
        let server =
            ControlServer::open(listener, identity(1), [NodeId(2)], None, move |mut client| {
                // The test may have ended already.
                let (session, logs) = (&mut client.session, SharedLogs::default());
                let greeted = greet(NodeId(2), session, &SharedStatus::default(), &logs);
                let _ = sender.send(greeted.map(|_| ()));
            });
        let server = server.expect("a thread");
        let never = AtomicBool::new(false);
        let silent =
            open_session(server.address(), &identity(2), None, Purpose::Join, LONG, &never)
                .expect("let in");
        let error =
            ended.recv_timeout(LONG).expect("it was given up").expect_err("it said nothing");
        assert!(matches!(error, SupplyError::Session(SessionError::TimeUp)), "{error}");
        drop(silent);
    }
}
