//! The joiner's side of a join: its attempts, one after the other, until a view admits it (VIE-10).
//!
//! One member leads the join: it supplies all that it can, and asks the group to admit the joiner.
//! Subgroups that it does not belong to come from others (`state_transfer`). If any of them is lost
//! before the group was asked, the join begins again. Once a view has admitted the joiner, what is
//! missing comes from a member of that view: nothing is delivered in it before the joiner is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_control::{OpenSessionError, Session};
use tramontane_core::ids::NodeId;

use super::admission::Admission;
use super::attempt_error::{AttemptError, PAUSE, STALL};
use super::join_messages::JoinRequest;
use super::restoring::Restoring;
use super::state_transfer::{StateTransfer, Supplier, welcome};
use super::transfer_progress::TransferProgress;
use crate::group::control::peer_connector::PeerConnector;
use crate::group::control::probe::{is_for_good, is_stranger};
use crate::group::delivery::replica::Replica;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::session_messages::send_message;

/// How long a node goes on that every member refuses for good: the member that answers may not be
/// of the group that runs.
const REFUSED_FOR: Duration = Duration::from_secs(2);

/// How long no member is found before a node takes the group for over: one that leaves does not
/// let others in any more, and the next may not know yet that it is alone.
const NOBODY_FOR: Duration = Duration::from_secs(1);

/// Between two checks whether a join is to end.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// The same after an attempt that did not reach all members; twice as long after each further one.
const UNREACHED_PAUSE: Duration = Duration::from_millis(250);

/// The longest of these.
const UNREACHED_PAUSE_MAX: Duration = Duration::from_secs(8);

/// After so many attempts in a row it is told: a member that ended may not be out of the view yet.
const UNREACHED_TOLD: u32 = 3;

/// A node that was admitted.
pub(crate) struct LetIn {
    /// The first view that has it.
    pub(crate) admission: Admission,
    /// The session with the member that led the join, which watches this process until it hears
    /// that the view is open here.
    lead: Session,
}

impl LetIn {
    /// Tells the member that led the join that the view is open here.
    pub(crate) fn tell_up(mut self) {
        // If it is gone, it need not know.
        let _ = send_message(&mut self.lead, &JoinRequest::Up, STALL);
    }
}

/// Tries until the group admits this node, all its members are gone, the time is up, or `cancel` is
/// true: whatever is under way ends then. `progress` is that of earlier joins of this process.
pub(crate) fn join<R: Replica>(
    description: &Description,
    own: NodeId,
    connector: &PeerConnector,
    restoring: Restoring<'_, R>,
    progress: &mut TransferProgress,
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
        // An application that panics as it restores must not leave the other thread running.
        let _over = Over(&is_over);
        let stop = &stop;
        let transfer = StateTransfer { description, own, connector, stop, restoring, progress };
        try_to_join(transfer)
    });
    match joined {
        // What is left to be said is not part of the join.
        Ok(mut let_in) => {
            let_in.lead.stop_with(Arc::default());
            Ok(let_in)
        }
        Err(_) if cancel.load(Ordering::Relaxed) => Err(OpenSessionError::Cancelled.into()),
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

/// Tries until the group admits this node or is over, or until it is to stop: then it reports the
/// failure of the attempt before.
fn try_to_join<R: Replica>(mut transfer: StateTransfer<'_, R>) -> Result<LetIn, AttemptError> {
    let (mut refused_since, mut nobody_since, mut before) = (None, None, None);
    let mut unreached = 0;
    loop {
        let error = match attempt(&mut transfer) {
            Ok(let_in) => return Ok(let_in),
            Err(error) if error.is_stopped() => return Err(before.unwrap_or(error)),
            Err(error) => error,
        };
        tracing::debug!(%error, "not admitted yet");
        let is_final = match error {
            AttemptError::Restore(_) | AttemptError::Log(_) | AttemptError::Outdated(_) => true,
            // A process with another key may be any process, at the address of a member that is
            // gone.
            AttemptError::Refused { ref why, .. } if is_for_good(why) => {
                refused_since.get_or_insert_with(Instant::now).elapsed() > REFUSED_FOR
            }
            _ => {
                refused_since = None;
                false
            }
        };
        if is_final || transfer.stop.load(Ordering::Relaxed) {
            return Err(error);
        }
        let is_nobody_there = match &error {
            AttemptError::Nobody => true,
            // A stranger at the address of a member says nothing of the group.
            AttemptError::Refused { why, .. } => !is_for_good(why),
            _ => false,
        };
        if !is_nobody_there {
            nobody_since = None;
        } else if nobody_since.get_or_insert_with(Instant::now).elapsed() > NOBODY_FOR
            && !transfer.has_group_members()
        {
            return Err(AttemptError::AllGone);
        }
        let is_unreached = matches!(error, AttemptError::Unreached(_));
        unreached = if is_unreached { unreached + 1 } else { 0 };
        if unreached == UNREACHED_TOLD {
            tracing::warn!("not let in yet: {error}");
        }
        let pause = if is_unreached {
            UNREACHED_PAUSE.saturating_mul(1 << unreached.min(8)).min(UNREACHED_PAUSE_MAX)
        } else {
            PAUSE
        };
        before = Some(error);
        let until = Instant::now() + pause;
        while Instant::now() < until && !transfer.stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_PAUSE);
        }
    }
}

fn attempt<R: Replica>(transfer: &mut StateTransfer<'_, R>) -> Result<LetIn, AttemptError> {
    transfer.progress.begin();
    let (node, view, session) = find_lead(transfer.own, transfer.connector, transfer.stop)?;
    let mut lead = Supplier::new(node, session, Vec::new());
    let admission = if view.members.contains(&transfer.own) {
        // Admitted by an earlier attempt.
        transfer.ask_admission(&mut lead)?
    } else {
        reach_all(transfer, &mut lead.session, &view)?;
        transfer.be_let_in(&mut lead, &view)?
    };
    transfer.complete(&admission)?;
    // Before it counts in any majority.
    transfer.restoring.commit()?;
    Ok(LetIn { admission, lead: lead.session })
}

/// Makes sure that this node reaches all members, before the group is asked to admit it: as one of
/// them it calls each. The member that leads the join reports it to operators.
fn reach_all<R>(
    transfer: &StateTransfer<'_, R>,
    lead: &mut Session,
    view: &View,
) -> Result<(), AttemptError> {
    let unreached = transfer.connector.unreached(&view.members, transfer.stop);
    if unreached.is_empty() {
        return Ok(());
    }
    let members = unreached.iter().map(|node| node.get()).collect();
    send_message(lead, &JoinRequest::Unreached { members }, STALL)?;
    Err(AttemptError::Unreached(unreached))
}

/// The first member that answers, and its view.
fn find_lead(
    own: NodeId,
    connector: &PeerConnector,
    stop: &Arc<AtomicBool>,
) -> Result<(NodeId, View, Session), AttemptError> {
    let mut refused = None;
    for node in connector.addresses.keys().copied().filter(|node| *node != own) {
        match welcome(node, connector, stop) {
            Ok((view, session)) => return Ok((node, view, session)),
            Err(AttemptError::OpenSession(OpenSessionError::Cancelled)) => {
                return Err(OpenSessionError::Cancelled.into());
            }
            Err(AttemptError::OpenSession(why)) if is_for_good(&why) || is_stranger(&why) => {
                refused = Some(AttemptError::Refused { node, why });
            }
            Err(error) => tracing::debug!(%node, %error, "this member does not lead the join"),
        }
    }
    Err(refused.unwrap_or(AttemptError::Nobody))
}
