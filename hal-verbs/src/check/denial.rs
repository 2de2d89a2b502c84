//! Checks whether forbidden writes are refused.

use std::time::{Duration, Instant};

use super::connection::RequestEnd;
use super::reach::text;
use super::{Check, CheckError, FindingVerdict, Judged, Session};
use crate::status::WorkStatus;

/// Number of bytes written, first with permission and then without.
const BYTES: usize = 4096;
const ALLOWED: u64 = 1;
const FORBIDDEN: u64 = 2;

/// The time after which late writes have landed.
const LATE_MAX: Duration = Duration::from_millis(100);

/// The answer of a driver that cannot forbid writes in this way.
const UNABLE: u64 = 2;

/// Writes with permission, and again after the permission has been revoked.
pub(super) fn write(session: &mut Session<'_>, check: Check) -> Judged {
    let mut connection = session.connect()?;
    connection.fill(0, BYTES, ALLOWED);
    let first = connection.write_and_wait(0, BYTES, session.longest());
    session.meet()?;
    let taken_back = session.hear_number()?;
    connection.fill(0, BYTES, FORBIDDEN);
    let ended = connection.write_and_wait(0, BYTES, session.longest());
    session.meet()?;
    let landed = session.hear_number()?;
    if first != RequestEnd::With(WorkStatus::Success) {
        let text = format!("a write with permission did not arrive ({})", text(first));
        return Ok((FindingVerdict::Failed, text));
    }
    if taken_back == UNABLE {
        return Ok((
            FindingVerdict::Note,
            "the driver does not support this, and nothing depends on it".to_owned(),
        ));
    }
    // Without revoked keys, nothing separates members. The other methods are never relied on alone.
    let bad = if check == Check::EndedKey { FindingVerdict::Failed } else { FindingVerdict::Note };
    Ok(match (landed, ended) {
        (0, RequestEnd::With(WorkStatus::Success)) => {
            (bad, "the write did not land, but was reported as completed".to_owned())
        }
        (0, ended) => (FindingVerdict::Passed, format!("the write did not land: {}", text(ended))),
        _ => (bad, "the write landed: this NIC does not deny writes in this way".to_owned()),
    })
}

/// Acts as the other end: revokes the right between the two writes, and checks which of them
/// landed.
pub(super) fn look(session: &mut Session<'_>, check: Check) -> Result<(), CheckError> {
    let mut connection = session.connect()?;
    session.meet()?;
    let taken_back = match check {
        Check::AccessFlags => connection.forbid(),
        Check::Reset => connection.reset(),
        _ => {
            connection.end_key();
            Ok(())
        }
    };
    session.tell_number(if taken_back.is_ok() { 1 } else { UNABLE })?;
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
