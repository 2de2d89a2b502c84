//! The joiner's side of a join: who supplies what, the states taken over, the messages since, and
//! the view that lets it in (VIE-10).
//!
//! One member leads the join: it supplies all that it can, and asks the group to let the joiner in.
//! Subgroups that it does not belong to come from others (`taking`). If any of them is lost before
//! the group was asked, all of it begins again. Once a view has let the joiner in, what is missing
//! comes from a member of that view: nothing is delivered in it before the joiner is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_control::{Purpose, Talk, TalkError, VisitError};
use tramontane_core::ids::{NodeId, SubgroupId};

use super::admission::Admission;
use super::description::Description;
use super::looking::{is_for_good, is_stranger};
use super::outside::Outside;
use super::replica::Replica;
use super::said::{JoinerAsks, JoinerHears};
use super::taken::Taken;
use super::taking::{Supplier, Taking};
use super::talking::{hear, say};
use super::view::View;

/// How long a member may take to say its next word: an upcall may be under way.
pub(super) const STALL: Duration = Duration::from_secs(60);

/// Between two attempts.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// How long a node goes on that every member sends away for good: one that answers may not be of
/// the group that runs.
const SENT_AWAY: Duration = Duration::from_secs(2);

/// Between two looks whether a join is to end.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Room for what stands around a message.
pub(super) const AROUND: u64 = 4096;

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
    #[error(
        "subgroup {0} lost all its members after its state was taken over here, and begins anew"
    )]
    Outdated(SubgroupId),
    #[error("the view that let this node in ended before it had all of the state")]
    ViewOver,
    #[error("the time was up before all of the state was taken over; allow more time")]
    TimeUp,
}

impl AttemptError {
    /// Whether it is that member's, and another may do as well.
    pub(super) const fn is_of_supplier(&self) -> bool {
        match self {
            Self::Nobody | Self::SentAway { .. } | Self::NotNow(_) | Self::Garbled => true,
            Self::Talk(error) => !matches!(error, TalkError::Stopped),
            Self::Visit(error) => !matches!(error, VisitError::Cancelled),
            Self::NoSupplier(_)
            | Self::Restore(_)
            | Self::Outdated(_)
            | Self::ViewOver
            | Self::TimeUp => false,
        }
    }

    /// Whether it was ended from here.
    pub(super) const fn is_stopped(&self) -> bool {
        matches!(self, Self::Talk(TalkError::Stopped) | Self::Visit(VisitError::Cancelled))
    }
}

/// A node that was let in.
pub(super) struct LetIn {
    /// The first view that has it.
    pub(super) admission: Admission,
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

/// Tries until the group lets this node in, or until the time is up, or `cancel` is true: whatever
/// is under way ends then.
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

/// Tries until the group lets this node in, or until it is to stop: what the attempt before came to
/// is said then.
fn try_to_join<R: Replica>(
    description: &Description,
    own: NodeId,
    outside: &Outside,
    replica: &mut R,
    stop: &Arc<AtomicBool>,
) -> Result<LetIn, AttemptError> {
    let (mut sent_away_since, mut before) = (None, None);
    let mut taking = Taking { description, own, outside, stop, replica, taken: Taken::default() };
    loop {
        let error = match attempt(&mut taking) {
            Ok(let_in) => return Ok(let_in),
            Err(error) if error.is_stopped() => return Err(before.unwrap_or(error)),
            Err(error) => error,
        };
        tracing::debug!(%error, "not let in yet");
        let is_final = match error {
            AttemptError::Restore(_) | AttemptError::Outdated(_) => true,
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

fn attempt<R: Replica>(taking: &mut Taking<'_, R>) -> Result<LetIn, AttemptError> {
    taking.taken.begin();
    let (node, view, talk) = find_lead(taking.own, taking.outside, taking.stop)?;
    let mut lead = Supplier::new(node, talk, Vec::new());
    let admission = if view.members.contains(&taking.own) {
        // Let in by an earlier attempt.
        taking.ask_admission(&mut lead)?
    } else {
        taking.be_let_in(&mut lead, &view)?
    };
    taking.complete(&admission)?;
    Ok(LetIn { admission, lead: lead.talk })
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
            Err(AttemptError::Visit(VisitError::Cancelled)) => {
                return Err(VisitError::Cancelled.into());
            }
            Err(AttemptError::Visit(why)) if is_for_good(&why) || is_stranger(&why) => {
                sent_away = Some(AttemptError::SentAway { node, why });
            }
            Err(error) => tracing::debug!(%node, %error, "does not lead a join"),
        }
    }
    Err(sent_away.unwrap_or(AttemptError::Nobody))
}

pub(super) fn welcome(
    node: NodeId,
    outside: &Outside,
    stop: &Arc<AtomicBool>,
) -> Result<(View, Talk), AttemptError> {
    let mut talk = outside.call(node, Purpose::Join, stop)?.talk;
    talk.stop_with(Arc::clone(stop));
    say(&mut talk, &JoinerAsks::Welcome, STALL)?;
    match hear(&mut talk, AROUND * 16, STALL)? {
        JoinerHears::View(view) => Ok((view.into(), talk)),
        JoinerHears::NotNow(why) => Err(AttemptError::NotNow(why)),
        _ => Err(AttemptError::Garbled),
    }
}
