//! Supplies the log of a joining node. Records that the node lacks are read from the local log
//! while the group continues (DUR-7).

use std::time::Duration;

use tramontane_control::Session;
use tramontane_core::ids::SubgroupId;

use super::error::{STALL, SupplyError};
use super::queue::TOGETHER_MAX;
use crate::group::durable::comparison::{LogPlace, READ_BYTES, SharedLog, SharedLogError};
use crate::group::durable::delivered::Delivered;
use crate::group::join::join_messages::JoinReply;
use crate::session_messages::send_message;

/// Time limit for delivered messages to become durable. After that, the node asks another member.
const DISK_MAX: Duration = Duration::from_secs(30);

/// Sends the number of records that the node's log and the local log have in common.
pub(crate) fn compare(
    session: &mut Session,
    log: Option<SharedLog>,
    last: Option<LogPlace>,
) -> Result<(), SupplyError> {
    let records = log.map(|log| log.common(last, DISK_MAX)).transpose()?.flatten();
    Ok(send_message(session, &JoinReply::Common { records }, STALL)?)
}

/// Sends the durable records from `from` up to, but not including, `to`.
pub(crate) fn fetch(
    session: &mut Session,
    log: Option<&SharedLog>,
    subgroup: SubgroupId,
    from: u64,
    to: u64,
) -> Result<(), SupplyError> {
    let Some(log) = log else { return Err(SupplyError::Malformed) };
    send(session, log, subgroup, from, to.min(log.end()))
}

/// Sends the records from `from` up to, but not including, `to`, once they are durable.
pub(crate) fn send_records(
    session: &mut Session,
    log: &SharedLog,
    subgroup: SubgroupId,
    from: u64,
    to: u64,
) -> Result<(), SupplyError> {
    log.wait(to, DISK_MAX)?;
    send(session, log, subgroup, from, to)
}

fn send(
    session: &mut Session,
    log: &SharedLog,
    subgroup: SubgroupId,
    mut from: u64,
    to: u64,
) -> Result<(), SupplyError> {
    while from < to {
        let mut read = log.read(subgroup, from, to, READ_BYTES)?.into_iter().peekable();
        while read.peek().is_some() {
            let records = together(&mut read);
            let first = from;
            from = from.saturating_add(u64::try_from(records.len()).unwrap_or(u64::MAX));
            let reply = JoinReply::Records { subgroup: subgroup.0, first, records, is_last: false };
            send_message(session, &reply, STALL)?;
        }
    }
    let (records, is_last) = (Vec::new(), true);
    let end = JoinReply::Records { subgroup: subgroup.0, first: from, records, is_last };
    Ok(send_message(session, &end, STALL)?)
}

/// Takes as many records as fit into one message.
fn together(records: &mut impl Iterator<Item = Delivered>) -> Vec<Delivered> {
    let (mut taken, mut bytes) = (Vec::new(), 0);
    while bytes < TOGETHER_MAX
        && let Some(record) = records.next()
    {
        bytes += record.payload.len() + RECORD_COST;
        taken.push(record);
    }
    taken
}

/// The memory overhead per record, in bytes.
const RECORD_COST: usize = 64;

impl From<SharedLogError> for SupplyError {
    fn from(error: SharedLogError) -> Self {
        Self::Log(error)
    }
}
