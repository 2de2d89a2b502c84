//! Finds a node's group, which is running, must be restarted, or must be formed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::place::{Found, StartingMember};
use super::start_options::StartError;
use crate::group::description::terms::Description;
use crate::group::restart;
use crate::group::state::folder::StateFolder;

/// The time for which a node meets others before it checks again whether one of them is restarting.
const FORMING_TURN: Duration = Duration::from_secs(2);

impl StartingMember {
    /// Finds the running group, restarts it, or forms it.
    ///
    /// A node that has noted that the group was being formed cannot know whether it was formed:
    /// another node may have become a member, and be restarting now. So the node alternates between
    /// asking the others and meeting the nodes that form the group.
    pub(crate) fn find_group(
        &mut self,
        description: &Description,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Found, StartError> {
        loop {
            let may_restart = self.may_restart(description);
            let is_note = self.state.as_ref().is_some_and(StateFolder::is_note);
            if may_restart
                && (!is_note || self.somebody_restarts())
                && let Some(met) = self.restart(description, until, cancel)?
            {
                return Ok(met);
            }
            let turn = Instant::now() + FORMING_TURN;
            let turn = if may_restart { until.min(turn) } else { until };
            let met = self.meet_unless_running(description, turn, cancel);
            let is_only_over = turn < until && Instant::now() >= turn;
            match met {
                Ok(Some(sessions)) => return Ok(Found::First(sessions)),
                // The nodes that meet mistake a restarting or joining node for a running member.
                Ok(None) => {
                    let probed = self.probe();
                    // The join will report a problem with another process, or that its time is up.
                    let is_told = probed.has_members
                        || probed.other_configuration.is_some()
                        || probed.refused.is_some();
                    let is_over = cancel.load(Ordering::Relaxed) || Instant::now() >= until;
                    if probed.is_running || is_told && !self.may_restart(description) || is_over {
                        return Ok(Found::Running);
                    }
                    std::thread::sleep(restart::LOOK_PAUSE);
                }
                Err(error) if !is_only_over => return Err(error),
                // Some nodes did not appear in this turn.
                Err(_) => {}
            }
        }
    }
}
