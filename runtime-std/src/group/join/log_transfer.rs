//! The logs of a joining node. Records that they lack come from a member's log, and records that
//! are not part of the group's history are set aside (DUR-7).
//!
//! Most records are fetched before the node asks to be supplied. Until then, the member keeps
//! nothing for it.

use tramontane_control::Session;
use tramontane_core::ids::SubgroupId;

use super::attempt_error::{AROUND, AttemptError, STALL};
use super::join_messages::{JoinReply, JoinRequest};
use super::restoring::Restoring;
use crate::group::delivery::application::Application;
use crate::group::durable::delivered::Delivered;
use crate::group::large::limits::LARGE_MAX;
use crate::group::supply::queue::TOGETHER_MAX;
use crate::session_messages::{receive_message, send_message};

/// The number of missing bytes below which a log can be supplied together with everything else.
const CLOSE_BYTES: usize = 4 << 20;

/// The maximum length of a message with records. One record may be as long as the largest large
/// message.
const RECORDS_BYTES_MAX: u64 = LARGE_MAX + 2 * TOGETHER_MAX as u64 + 16 * AROUND;

impl<A: Application> Restoring<'_, A> {
    /// Brings the logs of these subgroups, and with them the application, close to a member's.
    /// Returns each subgroup with the number of records that its log then has, excluding subgroups
    /// that need a state.
    pub(crate) fn catch_up(
        &mut self,
        session: &mut Session,
        subgroups: &[SubgroupId],
    ) -> Result<Vec<(u16, u64)>, AttemptError> {
        let mut records = Vec::new();
        for subgroup in subgroups {
            if self.data.log(*subgroup).is_some()
                && let Some(next) = self.catch_up_in(session, *subgroup)?
            {
                records.push((subgroup.0, next));
            }
        }
        Ok(records)
    }

    fn catch_up_in(
        &mut self,
        session: &mut Session,
        subgroup: SubgroupId,
    ) -> Result<Option<u64>, AttemptError> {
        let log = self.data.log(subgroup).ok_or(AttemptError::Malformed)?;
        log.commit()?;
        let compare = JoinRequest::Compare { subgroup: subgroup.0, last: log.last_place()? };
        send_message(session, &compare, STALL)?;
        let common = match receive_message(session, AROUND, STALL)? {
            JoinReply::Common { records } => records,
            JoinReply::NotNow(why) => return Err(AttemptError::NotNow(why)),
            _ => return Err(AttemptError::Malformed),
        };
        let goes_on = match common {
            Some(common) => self.go_on_behind(session, subgroup, common)?,
            None => false,
        };
        if !goes_on {
            // A member whose log no longer has those records supplies a state instead.
            self.data.begin_anew_in(subgroup)?;
            return Ok(None);
        }
        self.hand_over_log(subgroup)?;
        while self.fetch(session, subgroup)? >= CLOSE_BYTES {}
        Ok(self.data.log(subgroup).map(|log| log.next().0))
    }

    /// Repairs the records that both logs have, and sets aside later ones. Returns false if that is
    /// impossible.
    fn go_on_behind(
        &mut self,
        session: &mut Session,
        subgroup: SubgroupId,
        common: u64,
    ) -> Result<bool, AttemptError> {
        let log = self.data.log(subgroup).ok_or(AttemptError::Malformed)?;
        if !log.has_place_for(common) {
            return Ok(false);
        }
        for (from, to) in log.damaged_before(common) {
            let mut repairs = Vec::new();
            receive_records(session, subgroup, from, to, |_, records| {
                repairs.extend(records);
                Ok(())
            })?;
            if !self.data.repair(subgroup, from, to, &repairs)? {
                return Ok(false);
            }
        }
        self.data.cut(subgroup, common)?;
        Ok(true)
    }

    /// Fetches the records that a member has beyond the local ones. Returns their size in bytes.
    fn fetch(
        &mut self,
        session: &mut Session,
        subgroup: SubgroupId,
    ) -> Result<usize, AttemptError> {
        let from = self.data.log(subgroup).ok_or(AttemptError::Malformed)?.next().0;
        let mut bytes = 0;
        receive_records(session, subgroup, from, u64::MAX, |first, records| {
            bytes += records.iter().map(|record| record.payload.len()).sum::<usize>();
            self.take_records(subgroup, first, &records)
        })?;
        Ok(bytes)
    }
}

/// Asks for records, and passes them on as they arrive.
fn receive_records(
    session: &mut Session,
    subgroup: SubgroupId,
    from: u64,
    to: u64,
    mut take: impl FnMut(u64, Vec<Delivered>) -> Result<(), AttemptError>,
) -> Result<(), AttemptError> {
    send_message(session, &JoinRequest::Fetch { subgroup: subgroup.0, from, to }, STALL)?;
    loop {
        match receive_message(session, RECORDS_BYTES_MAX, STALL)? {
            JoinReply::Records { subgroup: of, first, records, is_last } if of == subgroup.0 => {
                take(first, records)?;
                if is_last {
                    return Ok(());
                }
            }
            JoinReply::NotNow(why) => return Err(AttemptError::NotNow(why)),
            _ => return Err(AttemptError::Malformed),
        }
    }
}
