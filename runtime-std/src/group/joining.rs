//! The joiner's side of a join: who supplies what, the states taken over, the messages since, and the view that lets
//! it in (VIE-10).
//!
//! One member leads the join: it supplies all that it can, and asks the group to let the joiner in. Subgroups that it does
//! not belong to come from others. If any of them is lost before the end, all of it begins again.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_mesh::{Purpose, Talk, TalkError, VisitError};

use super::description::Description;
use super::looking::{is_for_good, is_stranger};
use super::outside::Outside;
use super::queue::TOGETHER_MAX;
use super::replica::{Message, Messages, Replica};
use super::said::{Delivered, JoinerAsks, JoinerHears};
use super::talking::{hear, say};
use super::view::View;

/// How long a member may take to say its next word: an upcall may be under way.
const STALL: Duration = Duration::from_secs(60);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a node goes on that every member sends away for good: one that answers may not be of the group that runs.
const SENT_AWAY: Duration = Duration::from_secs(2);

/// Between two looks whether a join is to end.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Room for what stands around a message.
const AROUND: u64 = 4096;

/// Why an attempt to join came to nothing. Most are worth another.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    #[error("no member of the group is to be found")]
    Nobody,
    #[error("node {node}: {why}")]
    SentAway { node: NodeId, why: VisitError },
    #[error("{0}")]
    NotNow(String),
    #[error("subgroup {0} has members, and none of them answers")]
    NoSupplier(SubgroupId),
    #[error("a member was lost while it supplied this one: {0}")]
    Talk(#[from] TalkError),
    #[error("a member cannot be called: {0}")]
    Visit(#[from] VisitError),
    #[error("a member said what no member says")]
    Garbled,
    #[error("the state cannot be restored: {0}")]
    Restore(std::io::Error),
    #[error("the time was up before all of the state was taken over; allow more time")]
    TimeUp,
}

impl AttemptError {
    /// Whether it was ended from here.
    const fn is_stopped(&self) -> bool {
        matches!(self, Self::Talk(TalkError::Stopped) | Self::Visit(VisitError::Cancelled))
    }
}

/// A node that was let in.
pub(super) struct LetIn {
    /// The first view that has it.
    pub(super) view: View,
    /// The talk to the member that led the join: it watches this process until told that it is up.
    lead: Talk,
}

impl LetIn {
    /// Tells the member that led the join that the view is open here.
    pub(super) fn tell_up(mut self) {
        // If it is gone, it need not know.
        let _ = say(&mut self.lead, &JoinerAsks::Up, STALL);
    }
}

/// Tries until the group lets this node in, or until the time is up, or `cancel` is true: whatever is under way ends then.
pub(super) fn join<R: Replica>(
    description: &Description,
    own: NodeId,
    outside: &Outside,
    replica: &mut R,
    until: Instant,
    cancel: &AtomicBool,
) -> Result<LetIn, AttemptError> {
    let (is_over, stop) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let joined = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if Instant::now() >= until || cancel.load(Ordering::Relaxed) {
                    stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(LOOK_PAUSE);
            }
        });
        // An application that panics as it restores must not leave the other thread looking.
        let _over = Over(&is_over);
        try_to_join(description, own, outside, replica, &stop)
    });
    match joined {
        // What is left to be said is not part of the join.
        Ok(mut let_in) => {
            let_in.lead.stop_with(Arc::default());
            Ok(let_in)
        }
        Err(_) if cancel.load(Ordering::Relaxed) => Err(VisitError::Cancelled.into()),
        Err(error) if error.is_stopped() => Err(AttemptError::TimeUp),
        Err(error) => Err(error),
    }
}

/// Becomes true when this is dropped.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tries until the group lets this node in, or until it is to stop: what the attempt before came to is said then.
fn try_to_join<R: Replica>(
    description: &Description,
    own: NodeId,
    outside: &Outside,
    replica: &mut R,
    stop: &Arc<AtomicBool>,
) -> Result<LetIn, AttemptError> {
    let (mut sent_away_since, mut before) = (None, None);
    loop {
        let error = match attempt(description, own, outside, replica, stop) {
            Ok(let_in) => return Ok(let_in),
            Err(error) if error.is_stopped() => return Err(before.unwrap_or(error)),
            Err(error) => error,
        };
        tracing::debug!(%error, "not let in yet");
        let is_final = match error {
            AttemptError::Restore(_) => true,
            // Who has another key may be anybody, at the address of a member that is gone.
            AttemptError::SentAway { ref why, .. } if is_for_good(why) => {
                sent_away_since.get_or_insert_with(Instant::now).elapsed() > SENT_AWAY
            }
            _ => {
                sent_away_since = None;
                false
            }
        };
        if is_final || stop.load(Ordering::Relaxed) {
            return Err(error);
        }
        before = Some(error);
        std::thread::sleep(PAUSE);
    }
}

/// One member that supplies, and with what.
struct Supplier {
    talk: Talk,
    subgroups: Vec<SubgroupId>,
}

fn attempt<R: Replica>(
    description: &Description,
    own: NodeId,
    outside: &Outside,
    replica: &mut R,
    stop: &Arc<AtomicBool>,
) -> Result<LetIn, AttemptError> {
    let (lead, view, talk) = find_lead(own, outside, stop)?;
    if view.members.contains(&own) {
        return Err(AttemptError::NotNow(format!(
            "node {own} is a member still: its earlier process was not removed yet, or another one has its id"
        )));
    }
    let mut suppliers = choose(description, own, &view, lead, talk, outside, stop)?;
    for (index, supplier) in suppliers.iter_mut().enumerate() {
        let subgroups = supplier.subgroups.iter().map(|subgroup| subgroup.0).collect();
        say(&mut supplier.talk, &JoinerAsks::Supply { subgroups, leads: index == 0 }, STALL)?;
    }
    let view = take_all(description, &mut suppliers, replica)?;
    let lead = suppliers.swap_remove(0).talk;
    Ok(LetIn { view, lead })
}

/// Takes the states, and from each supplier everything that was delivered before the view that has this node.
///
/// Whoever led an earlier attempt may have let this node in meanwhile: then a supplier says so before it is asked. The others
/// know it too, and have what came before that view.
fn take_all<R: Replica>(
    description: &Description,
    suppliers: &mut [Supplier],
    replica: &mut R,
) -> Result<View, AttemptError> {
    let mut let_in = Vec::new();
    for supplier in &mut *suppliers {
        let_in.push(take(description, supplier, replica)?);
    }
    if let (Some(lead), Some(None)) = (suppliers.first_mut(), let_in.first()) {
        say(&mut lead.talk, &JoinerAsks::Ready, STALL)?;
    }
    for (supplier, view) in suppliers.iter_mut().zip(&mut let_in) {
        if view.is_none() {
            *view = take(description, supplier, replica)?;
        }
    }
    match let_in.into_iter().collect::<Option<Vec<View>>>() {
        None => Err(AttemptError::Garbled),
        Some(views) => views.into_iter().next().ok_or(AttemptError::Nobody),
    }
}

/// The first member that answers, and its view.
fn find_lead(
    own: NodeId,
    outside: &Outside,
    stop: &Arc<AtomicBool>,
) -> Result<(NodeId, View, Talk), AttemptError> {
    let mut sent_away = None;
    for node in outside.addresses.keys().copied().filter(|node| *node != own) {
        match welcome(node, outside, stop) {
            Ok((view, talk)) => return Ok((node, view, talk)),
            Err(AttemptError::Visit(VisitError::Cancelled)) => return Err(VisitError::Cancelled.into()),
            Err(AttemptError::Visit(why)) if is_for_good(&why) || is_stranger(&why) => {
                sent_away = Some(AttemptError::SentAway { node, why });
            }
            Err(error) => tracing::debug!(%node, %error, "does not lead a join"),
        }
    }
    Err(sent_away.unwrap_or(AttemptError::Nobody))
}

fn welcome(node: NodeId, outside: &Outside, stop: &Arc<AtomicBool>) -> Result<(View, Talk), AttemptError> {
    let mut talk = outside.call(node, Purpose::Join, stop)?.talk;
    talk.stop_with(Arc::clone(stop));
    say(&mut talk, &JoinerAsks::Welcome, STALL)?;
    match hear(&mut talk, AROUND * 16, STALL)? {
        JoinerHears::View(view) => Ok((view.into(), talk)),
        JoinerHears::NotNow(why) => Err(AttemptError::NotNow(why)),
        _ => Err(AttemptError::Garbled),
    }
}

/// Who supplies which of the subgroups that this node belongs to. The lead comes first, even if it supplies nothing.
fn choose(
    description: &Description,
    own: NodeId,
    view: &View,
    lead: NodeId,
    talk: Talk,
    outside: &Outside,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Supplier>, AttemptError> {
    let mut suppliers = vec![(lead, Supplier { talk, subgroups: Vec::new() })];
    for (id, subgroup) in (0..).map(SubgroupId).zip(&description.subgroups) {
        let members = view.subgroup_members(description, id);
        let is_ours = subgroup.members().contains(&own.get()) && !view.is_closed(id);
        if !is_ours || members.is_empty() {
            continue;
        }
        if let Some((_, known)) = suppliers.iter_mut().find(|(node, _)| members.contains(node)) {
            known.subgroups.push(id);
            continue;
        }
        let mut found = members.iter().filter_map(|node| Some((*node, welcome(*node, outside, stop).ok()?)));
        let (node, (_, talk)) = found.next().ok_or(AttemptError::NoSupplier(id))?;
        suppliers.push((node, Supplier { talk, subgroups: vec![id] }));
    }
    Ok(suppliers.into_iter().map(|(_, supplier)| supplier).collect())
}

/// Takes what a supplier sends, until it has nothing more for now, or until this node is a member.
fn take<R: Replica>(
    description: &Description,
    supplier: &mut Supplier,
    replica: &mut R,
) -> Result<Option<View>, AttemptError> {
    let longest = description
        .subgroups
        .iter()
        .map(|subgroup| subgroup.large_max.max(subgroup.message_max.into()))
        .max();
    let together = u64::try_from(TOGETHER_MAX).unwrap_or(u64::MAX);
    let bytes_max = longest.unwrap_or(0) + 2 * together + AROUND * 16;
    loop {
        match hear(&mut supplier.talk, bytes_max, STALL)? {
            JoinerHears::State { subgroup } => restore(&mut supplier.talk, SubgroupId(subgroup), replica)?,
            JoinerHears::Messages(messages) => messages.iter().for_each(|message| replay(message, replica)),
            JoinerHears::CaughtUp => return Ok(None),
            JoinerHears::Member(view) => return Ok(Some(view.into())),
            JoinerHears::NotNow(why) => return Err(AttemptError::NotNow(why)),
            JoinerHears::View(_) => return Err(AttemptError::Garbled),
        }
    }
}

/// Hands over a message that was delivered before this node was a member.
fn replay<R: Replica>(delivered: &Delivered, replica: &mut R) {
    let message = Message {
        subgroup: SubgroupId(delivered.subgroup),
        view: ViewId(delivered.view),
        place: Place(delivered.place),
        sender: NodeId(delivered.sender),
        payload: &delivered.payload,
        is_replayed: true,
    };
    replica.deliver(&mut Messages::replayed(message));
}

/// Hands a state to the application as it comes, whatever its size.
fn restore<R: Replica>(talk: &mut Talk, subgroup: SubgroupId, replica: &mut R) -> Result<(), AttemptError> {
    let (mut reader, mut writer) = std::io::pipe().map_err(AttemptError::Restore)?;
    std::thread::scope(|scope| {
        let received = scope.spawn(move || {
            let received = talk.receive_stream(&mut writer, u64::MAX, STALL);
            // What is still in a buffer; and then the end, which the reader waits for.
            received.and_then(|_| writer.flush().map_err(TalkError::Local))
        });
        let restored = replica.restore(subgroup, &mut reader);
        drop(reader);
        let received = received.join().unwrap_or(Err(TalkError::Stopped));
        match (received, restored) {
            (Ok(()), Ok(())) => Ok(()),
            // The application stopped reading.
            (Ok(()) | Err(TalkError::Local(_)), Err(error)) => Err(AttemptError::Restore(error)),
            // A state that was cut short, whatever the application makes of it.
            (Err(error), _) => Err(error.into()),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tramontane_mesh::{Door, Identity, Listener, visit};

    use super::super::said::tests::message;
    use super::super::view::{FIRST_VIEW, WireView};
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A member that says what it is told to, and the talk to it.
    fn scripted(script: impl Fn(&mut Talk) + Send + Sync + 'static) -> (Door, Supplier) {
        let identity = |node| Identity { node: NodeId(node), incarnation: 1, digest: 7 };
        let listener = Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let door = Door::open(listener, identity(1), [NodeId(2)], None, move |mut visitor| {
            script(&mut visitor.talk)
        });
        let door = door.expect("a thread");
        let never = AtomicBool::new(false);
        let talk =
            visit(door.address(), &identity(2), None, Purpose::Join, LONG, &never).expect("let in").talk;
        (door, Supplier { talk, subgroups: Vec::new() })
    }

    /// A member may say that the joiner is in by an earlier wish, when another has told that it has caught up.
    #[test]
    fn who_was_let_in_meanwhile_takes_what_every_supplier_delivered_before_that() {
        let view = View { id: FIRST_VIEW, members: vec![NodeId(1), NodeId(2)], closed: Vec::new() };
        let member = || JoinerHears::Member(WireView::from(&view));
        let (first, second) = (member(), member());
        let (_lead_door, lead) = scripted(move |talk| {
            say(talk, &JoinerHears::CaughtUp, LONG).expect("it hears");
            let ready: JoinerAsks = hear(talk, AROUND, LONG).expect("it is asked to go on");
            assert_eq!(ready, JoinerAsks::Ready);
            say(talk, &JoinerHears::Messages(vec![message(b"delivered late")]), LONG).expect("it hears");
            say(talk, &first, LONG).expect("it hears");
        });
        let (_other_door, other) = scripted(move |talk| say(talk, &second, LONG).expect("it hears"));
        let mut delivered = Vec::new();
        let mut replica = |messages: &mut Messages<'_, '_>| {
            messages.for_each(|message| delivered.push(message.payload.to_vec()));
        };
        let description = Description::local("joining", 3, 8, 16);
        let taken = take_all(&description, &mut [lead, other], &mut replica).expect("it is let in");
        assert_eq!((taken, delivered), (view, vec![b"delivered late".to_vec()]));
    }
}
