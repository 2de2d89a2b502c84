//! The joining node's side of a join: successive attempts until a view admits the node (VIE-10).
//!
//! One member leads the join: it supplies everything that it can, and asks the group to admit the
//! node. Other members supply the subgroups that the leading member does not belong to
//! (`state_transfer`). If any of them is lost before the group has been asked, the join restarts.
//! Once a view has admitted the node, anything missing comes from a member of that view, because
//! nothing is delivered in it before the node is ready.

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
use crate::group::delivery::application::Application;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::session_messages::send_message;

/// The time for which a node keeps trying although every member refuses it for good. The member
/// that answers may not belong to the running group.
const REFUSED_FOR: Duration = Duration::from_secs(2);

/// The time without any member after which a node concludes that the group has ended. A leaving
/// member no longer admits others, and the next one may not know yet that it is the only one left.
const NOBODY_FOR: Duration = Duration::from_secs(1);

/// The interval between checks of whether a join must end.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// The pause after an attempt that did not reach all members. It doubles with each further one.
const UNREACHED_PAUSE: Duration = Duration::from_millis(250);

/// The maximum pause of that kind.
const UNREACHED_PAUSE_MAX: Duration = Duration::from_secs(8);

/// The number of successive attempts of that kind after which the problem is reported. A member
/// that has exited may still be in the view at first.
const UNREACHED_TOLD: u32 = 3;

/// A node that has been admitted.
pub(crate) struct LetIn {
    /// The first view that contains the node.
    pub(crate) admission: Admission,
    /// The session with the member that led the join. That member monitors this process until it
    /// learns that the view is open here.
    lead: Session,
}

impl LetIn {
    /// Tells the member that led the join that the view is open here.
    pub(crate) fn tell_up(mut self) {
        // If that member has been lost, it need not know.
        let _ = send_message(&mut self.lead, &JoinRequest::Up, STALL);
    }
}

/// Tries until the group admits this node, all its members are lost, the time is up, or `cancel` is
/// true, which ends whatever is in progress. `progress` is the progress of this process's earlier
/// joins.
pub(crate) fn join<A: Application>(
    description: &Description,
    own: NodeId,
    connector: &PeerConnector,
    restoring: Restoring<'_, A>,
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
        // If the application panics during a restore, the other thread must not keep running.
        let _over = Over(&is_over);
        let stop = &stop;
        let transfer = StateTransfer { description, own, connector, stop, restoring, progress };
        try_to_join(transfer)
    });
    match joined {
        // The remaining messages are not part of the join.
        Ok(mut let_in) => {
            let_in.lead.stop_with(Arc::default());
            Ok(let_in)
        }
        Err(_) if cancel.load(Ordering::Relaxed) => Err(OpenSessionError::Cancelled.into()),
        Err(error) if error.is_stopped() => Err(AttemptError::TimeUp),
        Err(error) => Err(error),
    }
}

/// Sets the flag when dropped.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tries until the group admits this node or has ended, or until the attempt is stopped. In that
/// case, reports the failure of the previous attempt.
fn try_to_join<A: Application>(mut transfer: StateTransfer<'_, A>) -> Result<LetIn, AttemptError> {
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
            // A process with a different configuration may be unrelated to the group, and run at
            // the address of a lost member.
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
            // An unauthenticated process at a member's address says nothing about the group.
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
            tracing::warn!("not admitted yet: {error}");
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

fn attempt<A: Application>(transfer: &mut StateTransfer<'_, A>) -> Result<LetIn, AttemptError> {
    transfer.progress.begin();
    let (node, view, session) = find_lead(transfer.own, transfer.connector, transfer.stop)?;
    let mut lead = Supplier::new(node, session, Vec::new());
    let admission = if view.members.contains(&transfer.own) {
        // An earlier attempt led to this admission.
        transfer.ask_admission(&mut lead)?
    } else {
        transfer.be_let_in(&mut lead, &view)?
    };
    transfer.complete(&admission)?;
    // The state must be durable before the node counts in any majority.
    transfer.restoring.commit()?;
    Ok(LetIn { admission, lead: lead.session })
}

/// Returns the first member that answers, with its view.
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
