//! Checks whether packets get through at all, and whether long ones do.

use std::time::Duration;

use super::connection::{CheckConnection, RequestEnd};
use super::{CheckError, FindingVerdict, Judged, Session};
use crate::status::WorkStatus;

/// Number of full-size packets in one write.
const PACKETS: usize = 16;

/// Posts an empty write.
pub(super) fn write_nothing(session: &mut Session<'_>) -> Judged {
    let mut connection = session.connect()?;
    let ended = connection.write_and_wait(0, 0, session.longest());
    session.meet()?;
    Ok(match ended {
        RequestEnd::With(WorkStatus::Success) => {
            (FindingVerdict::Passed, "an empty write is acknowledged".to_owned())
        }
        ended => (
            FindingVerdict::Failed,
            format!(
                "an empty write is not acknowledged ({}); choose GIDs on the same network, and let \
                 UDP port 4791 pass the firewalls",
                text(ended)
            ),
        ),
    })
}

/// Writes a full packet, then several of them.
pub(super) fn write_full_packets(session: &mut Session<'_>) -> Judged {
    let mut connection = session.connect()?;
    let mtu = usize::try_from(connection.mtu_bytes()).unwrap_or(0);
    let judged = [mtu, mtu * PACKETS].into_iter().find_map(|bytes| {
        let ended = write(&mut connection, bytes, session.longest());
        (ended != RequestEnd::With(WorkStatus::Success)).then(|| {
            let text = format!(
                "small packets pass, but a write of {bytes} B does not ({}); check the MTU of \
                 every switch and interface between the hosts, or set the RDMA MTU to 1024",
                text(ended)
            );
            (FindingVerdict::Failed, text)
        })
    });
    session.meet()?;
    let passed = format!("packets of {mtu} B are acknowledged");
    Ok(judged.unwrap_or((FindingVerdict::Passed, passed)))
}

fn write(connection: &mut CheckConnection, bytes: usize, time_limit: Duration) -> RequestEnd {
    connection.write_and_wait(0, bytes, time_limit)
}

/// Acts as the other end, which has nothing to do.
pub(super) fn stay(session: &mut Session<'_>) -> Result<(), CheckError> {
    let _connection = session.connect()?;
    session.meet()
}

/// Describes how a write ended.
pub(super) fn text(ended: RequestEnd) -> String {
    match ended {
        RequestEnd::With(status) => status.to_string(),
        RequestEnd::NotYet => "no completion arrived".to_owned(),
    }
}
