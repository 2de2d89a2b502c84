//! What block groups reach on a real fabric, and what stands beside it.

use serde::Serialize;

use crate::bench::processes::Spread;
use crate::table::{Table, scaled};

/// What a row is compared with: the same bytes to as many receivers, in turn with it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Beside {
    /// From the start to the last receiver's end, in milliseconds; of each round the median.
    pub(super) ms: Spread,
    /// Its time by the row's, round by round: above one, the row is faster.
    pub(super) by_row: Spread,
}

/// The probes of a row.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Probes {
    /// One `memcpy` at each receiver, all at once.
    pub(super) memcpy: Beside,
    /// Each receiver reads every byte where the sender has it.
    pub(super) lent: Beside,
    /// `MPI_Bcast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mpi: Option<Beside>,
}

/// One configuration's result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// `shm` or `tcp`.
    pub(super) fabric: &'static str,
    pub(super) algorithm: &'static str,
    /// Members of each group, its root among them.
    pub(super) nodes: u16,
    /// Groups at work at the same time, each with a root of its own.
    pub(super) groups: u16,
    /// Bytes of a message.
    pub(super) bytes: usize,
    pub(super) block_bytes: usize,
    /// Receives and sends that are under way at a member.
    pub(super) receives: u16,
    pub(super) sends: u16,
    /// Messages of a root that are under way.
    pub(super) ahead: usize,
    /// From the send to the moment at which the last receiver had it all, in milliseconds; of each round the median.
    pub(super) latency_ms: Spread,
    /// Bytes of a message by that time: what each receiver got a second.
    pub(super) bytes_per_s: f64,
    /// Bytes of all groups' messages, by the time that they took together.
    pub(super) total_bytes_per_s: Spread,
    /// The slowest group's bytes a second by the fastest's.
    pub(super) fairness: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) probes: Option<Probes>,
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Printed {
    /// The machine.
    pub(super) machine: String,
    pub(super) rows: Vec<Row>,
    /// Why there is nothing of MPI, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

impl Printed {
    /// For people.
    pub(super) fn text(&self) -> String {
        let headings = [
            "fabric",
            "algorithm",
            "nodes",
            "groups",
            "bytes",
            "block",
            "window",
            "ms",
            "(min..max)",
            "each",
            "total",
            "fairness",
            "beside",
        ];
        let mut table = Table::new(&headings, &[0, 1, 8, 12]);
        for row in &self.rows {
            table.row([
                row.fabric.to_owned(),
                row.algorithm.to_owned(),
                row.nodes.to_string(),
                row.groups.to_string(),
                row.bytes.to_string(),
                row.block_bytes.to_string(),
                format!("{}/{}", row.receives, row.sends),
                format!("{:.3}", row.latency_ms.median),
                format!("({:.3}..{:.3})", row.latency_ms.min, row.latency_ms.max),
                scaled(row.bytes_per_s),
                scaled(row.total_bytes_per_s.median),
                format!("{:.2}", row.fairness.median),
                row.probes.as_ref().map_or_else(String::new, beside),
            ]);
        }
        let note = self.note.as_ref().map(|note| format!("{note}\n")).unwrap_or_default();
        format!(
            "{}\n{table}{note}ms: from the send until the last receiver has it all; each: bytes a second at a receiver; total: of all groups; \
             fairness: the slowest group by the fastest; beside: ms, and that by the row's\n",
            self.machine
        )
    }
}

fn beside(probes: &Probes) -> String {
    let one = |name: &str, Beside { ms, by_row }: &Beside| {
        format!("{name} {:.3}, {:.2} ({:.2}..{:.2})", ms.median, by_row.median, by_row.min, by_row.max)
    };
    let mut words = vec![one("memcpy", &probes.memcpy), one("lent", &probes.lent)];
    words.extend(probes.mpi.as_ref().map(|mpi| one("MPI_Bcast", mpi)));
    words.join("; ")
}
