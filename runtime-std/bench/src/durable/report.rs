//! What `bench durable` prints.

use std::path::PathBuf;

use serde::Serialize;

use crate::spread::Spread;
use tramontane_local::table::Table;

/// One group.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Members, each with a log.
    pub nodes: u16,
    /// Bytes of a message.
    pub message_bytes: u32,
    /// MiB of messages in each log when all members were killed.
    pub log_mib: u64,
    /// What became durable everywhere, in MB/s of messages in each log.
    pub logged_mb_per_s: Spread,
    /// The same bytes by as many plain writers, with as many syncs each.
    pub plain_mb_per_s: Spread,
    /// What the group took of what plain writers took, round by round.
    pub of_plain: Spread,
    /// Syncs of a member a second.
    pub syncs_per_s: Spread,
    /// From the start of the first process to the membership of the last one, in s.
    pub restart_s: f64,
    /// Messages in the order, before the kill and after the restart.
    pub messages: u64,
    /// The digest of all of them at all members, before the kill and after the restart.
    pub digest: String,
}

/// What `bench durable` prints.
#[derive(Clone, Debug, Serialize)]
pub struct DurableReport {
    /// The machine.
    pub machine: String,
    /// Where the logs were.
    pub folder: PathBuf,
    /// In how many parts each case sent.
    pub rounds: u64,
    /// By members and bytes.
    pub cases: Vec<Case>,
}

impl DurableReport {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let headings = "members  bytes  log MB/s  min  max  plain MB/s  of plain  syncs/s  log MiB  \
                        restart s";
        let mut table = Table::new(headings, &[]);
        for case in &self.cases {
            table.row([
                case.nodes.to_string(),
                case.message_bytes.to_string(),
                format!("{:.1}", case.logged_mb_per_s.median),
                format!("{:.1}", case.logged_mb_per_s.min),
                format!("{:.1}", case.logged_mb_per_s.max),
                format!("{:.1}", case.plain_mb_per_s.median),
                format!("{:.0} %", case.of_plain.median * 100.0),
                format!("{:.0}", case.syncs_per_s.median),
                case.log_mib.to_string(),
                format!("{:.2}", case.restart_s),
            ]);
        }
        format!(
            "{}\nlogs in {}, {} rounds, plain writers in turn\n{table}MB/s are of each log. All \
             members were killed at once and restarted: the same messages in the same order at \
             all, before and after.\n",
            self.machine,
            self.folder.display(),
            self.rounds,
        )
    }
}
