//! Checks how long it takes to give up a dead peer.

use std::time::{Duration, Instant};

use super::connection::RequestEnd;
use super::reach::text;
use super::{CheckError, FindingVerdict, Judged, Session};
use crate::status::WorkStatus;

/// A bound on the time that firmware may add to the requested time.
const FIRMWARE_MAX: Duration = Duration::from_secs(30);

/// Allowance for timers and for a busy processor.
const SLACK: Duration = Duration::from_secs(1);

impl Session<'_> {
    /// Returns an upper bound on the time after which any request has been acknowledged or given
    /// up.
    pub(super) fn longest(&self) -> Duration {
        self.site.loss_times().longest() + SLACK
    }
}

/// Writes to a peer whose end has disappeared, and measures the time.
pub(super) fn write(session: &mut Session<'_>) -> Judged {
    let mut connection = session.connect()?;
    session.meet()?;
    let started = Instant::now();
    let most = session.longest() + FIRMWARE_MAX;
    let ended = connection.write_and_wait(0, 64, most);
    let took = started.elapsed();
    session.meet()?;
    let (least, longest) = (session.site.loss_times().least(), session.site.loss_times().longest());
    let stated = format!("the stated range is {least:.1?} to {longest:.1?}");
    Ok(match ended {
        RequestEnd::With(WorkStatus::Success) => (
            FindingVerdict::Failed,
            "a write to a peer that has exited was acknowledged".to_owned(),
        ),
        RequestEnd::NotYet => (
            FindingVerdict::Failed,
            format!(
                "the device did not give up within {most:.1?}; {stated}; check the firmware's \
                     timeouts"
            ),
        ),
        RequestEnd::With(status) if took > longest + SLACK => (
            FindingVerdict::Note,
            format!(
                "the device gave up after {took:.1?} ({status}); {stated}; the firmware waits \
                 longer, so raise the timer floor until the stated range includes this time"
            ),
        ),
        // A device may be late, but never early: otherwise, peers would be lost although the link
        // recovers in time.
        RequestEnd::With(status) if took < least => (
            FindingVerdict::Failed,
            format!(
                "the device gave up after {took:.1?} ({status}); {stated}; a short loss of the \
                 link would lose peers, so update the firmware, or use a different device"
            ),
        ),
        ended => (
            FindingVerdict::Passed,
            format!("the device gave up after {took:.1?} ({}); {stated}", text(ended)),
        ),
    })
}

/// Acts as the end that disappears.
pub(super) fn go(session: &mut Session<'_>) -> Result<(), CheckError> {
    drop(session.connect()?);
    session.meet()?;
    session.meet()
}
