//! How a node finds its group: running, to be restarted, or to be formed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::place::{Found, StartingMember};
use super::start_options::StartError;
use crate::group::description::terms::Description;
use crate::group::restart;
use crate::group::state::folder::StateFolder;

/// How long a node meets others before it asks again whether one of them restarts.
const FORMING_TURN: Duration = Duration::from_secs(2);

impl StartingMember {
    /// Finds the group running, restarts it, or forms it.
    ///
    /// A node that has noted that the group was being formed cannot know whether it was: another
    /// one may have become a member, and restarts. So it asks the others and meets those that form
    /// the group, in turn.
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
                // To those that meet, a node that restarts or joins looks as if it ran.
                Ok(None) => {
                    let probed = self.probe();
                    // The join says what is wrong with another process, and that the time is up.
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
                // Not all came in this turn.
                Err(_) => {}
            }
        }
    }
}
