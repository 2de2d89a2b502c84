//! The table of simulated runs: what happens inside first, then what a user sees of it.

use tramontane_local::table::Table;

use super::Inside;
use crate::report::{Row, labelled};
use crate::spread::Spread;

/// The rows as a table.
pub(crate) fn table(rows: &[Row]) -> String {
    let headings = "fabric  nodes  senders  bytes  techniques  posting  blocked  idle  sent  \
                    received  delivered  latency us  writes  nulls  GB/s  (min..max)  beside";
    let mut table = Table::new(headings, &[0, 4, 16]);
    for (row, inside) in rows.iter().filter_map(|row| Some((row, row.inside.as_ref()?))) {
        let mut cells = vec![
            row.fabric.to_owned(),
            row.nodes.to_string(),
            row.senders.to_string(),
            row.bytes.to_string(),
            labelled(row),
        ];
        cells.extend(measures(row, inside));
        table.row(cells);
    }
    format!("{table}{NOTES}")
}

const NOTES: &str = "\
medians over the seeds, and for GB/s the least and the most
posting: of the polling threads' time, all of the run's; blocked: of the senders' time, without \
a free slot; idle: of all steps
sent, received, delivered: messages in a batch; latency: from ready to delivered; writes: for \
each message, to one peer
GB/s: delivered at a member, own messages and others'
";

fn measures(row: &Row, inside: &Inside) -> [String; 12] {
    let percent = |share: &Spread| format!("{:.1} %", 100.0 * share.median);
    let mean = |batch: &Spread| format!("{:.2}", batch.median);
    let rate = &inside.gigabytes_per_s;
    [
        percent(&inside.posting_share),
        percent(&inside.blocked_share),
        inside.idle_share.as_ref().map_or_else(|| "-".into(), percent),
        mean(&inside.send_batch),
        mean(&inside.receive_batch),
        mean(&inside.delivery_batch),
        format!("{:.1}", inside.latency_us.median),
        row.writes_per_message.map_or_else(|| "-".into(), |writes| format!("{writes:.3}")),
        row.nulls.map_or_else(|| "-".into(), |nulls| nulls.to_string()),
        format!("{:.3}", rate.median),
        format!("({:.3}..{:.3})", rate.min, rate.max),
        row.others_alone.map_or_else(String::new, |share| {
            format!("{:.1} % of what the others reach alone", 100.0 * share)
        }),
    ]
}
