//! Checks whether writes with a revoked key are refused.

use std::time::{Duration, Instant};

use super::connection::RequestEnd;
use super::reach::text;
use super::{CheckError, FindingVerdict, Judged, Session};
use crate::status::WorkStatus;

/// Number of bytes written, first with permission and then without.
const BYTES: usize = 4096;
const ALLOWED: u64 = 1;
const FORBIDDEN: u64 = 2;

/// The time after which late writes have landed.
const LATE_MAX: Duration = Duration::from_millis(100);

/// Writes with permission, and again after the key has been revoked.
pub(super) fn write(session: &mut Session<'_>) -> Judged {
    let mut connection = session.connect()?;
    connection.fill(0, BYTES, ALLOWED);
    let first = connection.write_and_wait(0, BYTES, session.longest());
    session.meet()?;
    // The other end revokes the key in between.
    session.meet()?;
    connection.fill(0, BYTES, FORBIDDEN);
    let ended = connection.write_and_wait(0, BYTES, session.longest());
    session.meet()?;
    let landed = session.hear_number()?;
    if first != RequestEnd::With(WorkStatus::Success) {
        let text = format!("a write with permission did not arrive ({})", text(first));
        return Ok((FindingVerdict::Failed, text));
    }
    // Without revoked keys, nothing separates members.
    let bad = FindingVerdict::Failed;
    Ok(match (landed, ended) {
        (0, RequestEnd::With(WorkStatus::Success)) => {
            (bad, "the write did not land, but was reported as completed".to_owned())
        }
        (0, ended) => (FindingVerdict::Passed, format!("the write did not land: {}", text(ended))),
        _ => (bad, "the write landed: this NIC does not deny writes in this way".to_owned()),
    })
}

/// Acts as the other end: revokes the key between the two writes, and checks which of them landed.
pub(super) fn look(session: &mut Session<'_>) -> Result<(), CheckError> {
    let mut connection = session.connect()?;
    session.meet()?;
    connection.end_key();
    session.meet()?;
    session.meet()?;
    let until = Instant::now() + LATE_MAX;
    let mut landed = 0;
    while landed == 0 && Instant::now() < until {
        let row = connection.written();
        let is_forbidden = |at: &usize| row.cell(*at).is_ok_and(|cell| cell.load() == FORBIDDEN);
        landed = (0..BYTES).step_by(8).filter(is_forbidden).count() as u64;
        std::thread::sleep(Duration::from_millis(1));
    }
    session.tell_number(landed)
}
