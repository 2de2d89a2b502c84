//! The output of `bench durable`.

use std::path::PathBuf;

use serde::Serialize;

use crate::spread::Spread;
use crate::text::{ReportTable, text};

/// The results of one group.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Number of members, each with a log.
    pub nodes: u16,
    /// Size of a message in bytes.
    pub message_bytes: u32,
    /// Size in MiB of each log when all members were killed.
    pub log_mib: u64,
    /// Rate at which messages became durable everywhere, in MB/s per log.
    pub logged_mb_per_s: Spread,
    /// Rate of the same number of plain writers for the same bytes, with the same number of syncs
    /// each.
    pub plain_mb_per_s: Spread,
    /// The group's rate divided by that of the plain writers, round by round.
    pub of_plain: Spread,
    /// Syncs per second of a member.
    pub syncs_per_s: Spread,
    /// Time from the start of the first process until the last one is a member, in s.
    pub restart_s: f64,
    /// Number of messages in the order, before the kill and after the restart.
    pub messages: u64,
    /// The digest of all messages on every member, before the kill and after the restart.
    pub digest: String,
}

/// The output of `bench durable`.
#[derive(Clone, Debug, Serialize)]
pub struct DurableReport {
    /// The machine on which this ran.
    pub machine: String,
    /// The folder of the logs.
    pub folder: PathBuf,
    /// Number of parts in which the messages of each case were sent.
    pub rounds: u64,
    /// One case for each number of members and message size.
    pub cases: Vec<Case>,
}

impl DurableReport {
    /// Returns the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = "nodes message_bytes logged_mb_per_s plain_mb_per_s of_plain syncs_per_s \
                       log_mib restart_s messages";
        let cases = ReportTable { list: "cases", columns, left: &[] };
        text(self, "machine folder rounds", &[cases])
            + "MB per s are for each log. All members were killed at once and restarted. All of \
               them had the same messages in the same order, before and after.\n"
    }
}
