//! A node's RDMA metrics for Prometheus: the figures of its fabric, and the kernel's counters at
//! the port of its device.

use std::path::Path;

use tramontane_runtime::metrics::MetricsPage;
use tramontane_runtime::rdma::Figures;

/// The kernel's folder of RDMA devices.
pub(super) const DEVICES: &str = "/sys/class/infiniband";

/// The drivers' names for retransmitted packets. Each driver has some of these.
const RETRIES: [&str; 5] = [
    "completer_retry_err",
    "local_ack_timeout_err",
    "packet_seq_err",
    "rnr_nak_retry_err",
    "to_retransmits",
];

/// An entry among the kernel's counters that is no counter: the interval between their updates.
const NO_COUNTER: &str = "lifespan";

/// Writes all RDMA metrics. `devices` is the kernel's folder of RDMA devices.
pub(super) fn write(text: &mut MetricsPage, figures: &Figures, devices: &Path) {
    let Figures { device, link_losses, counters, losses, .. } = figures;
    let port = figures.port.to_string();
    let place = [("device", device.as_str()), ("port", port.as_str())];
    let link = "1 if the link of the RDMA port in use is up, with device and port as labels";
    text.gauges("tramontane_rdma_link_up", link, &[(place, u64::from(figures.has_link))]);
    for (name, help, value) in [
        (
            "tramontane_rdma_link_losses",
            "How often the RDMA port in use lost its link",
            *link_losses,
        ),
        ("tramontane_rdma_posted_lists", "Lists of writes posted over RDMA", counters.lists),
        ("tramontane_rdma_posted_writes", "Writes posted over RDMA", counters.writes),
        ("tramontane_rdma_posted_bytes", "Bytes of writes posted over RDMA", counters.bytes),
        (
            "tramontane_rdma_doorbells",
            "Calls that hand requests to the RDMA device",
            counters.doorbells,
        ),
        ("tramontane_rdma_completions", "Completions taken", counters.completions),
        ("tramontane_rdma_refused_lists", "Lists that found no room in a queue", counters.refused),
        (
            "tramontane_rdma_notices",
            "Notices sent, to wake members and about keys",
            counters.notices_sent,
        ),
        (
            "tramontane_rdma_updates",
            "Updates sent for devices that keep no order",
            counters.updates,
        ),
        ("tramontane_rdma_blocks", "Blocks of large messages written to members", counters.blocks),
    ] {
        text.counter(name, help, value);
    }
    let lost = "Members that became unreachable, by the status of the first failed request";
    let losses: Vec<_> = losses.iter().map(|(name, count)| ([("status", *name)], *count)).collect();
    text.counters("tramontane_rdma_lost_members", lost, &losses);
    let counts = port_counters(&devices.join(device).join("ports").join(&port));
    let [of_device, of_port] = place;
    let labelled = counts.iter();
    let labelled: Vec<_> = labelled
        .map(|(name, value)| ([of_device, of_port, ("counter", name.as_str())], *value))
        .collect();
    let kernel = "Kernel counters of the RDMA port in use, for all programs";
    text.counters("tramontane_rdma_port_events", kernel, &labelled);
    let of_retries = counts.iter().filter(|(name, _)| RETRIES.contains(&name.as_str()));
    let mut retries = of_retries.map(|(_, value)| *value).peekable();
    if retries.peek().is_some() {
        let help = "Packets retransmitted at the RDMA port in use, for all programs";
        text.counter("tramontane_rdma_retries", help, retries.sum::<u64>());
    }
}

/// Returns the kernel's hardware counters of a port, by name.
fn port_counters(port: &Path) -> Vec<(String, u64)> {
    let Ok(entries) = std::fs::read_dir(port.join("hw_counters")) else { return Vec::new() };
    let counters = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name != NO_COUNTER)?;
        let text = std::fs::read_to_string(entry.path()).ok()?;
        Some((name, text.trim().parse().ok()?))
    });
    let mut counters: Vec<_> = counters.collect();
    counters.sort();
    counters
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the figures of a member that has posted writes and has lost a peer, and a folder
    /// like the kernel's.
    pub(crate) fn sample() -> (Figures, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let counters = folder.path().join("rxe0/ports/1/hw_counters");
        std::fs::create_dir_all(&counters).expect("a folder");
        for (name, value) in
            [("completer_retry_err", "3\n"), ("sent_pkts", "900\n"), ("lifespan", "12\n")]
        {
            std::fs::write(counters.join(name), value).expect("a file");
        }
        let mut figures = Figures {
            device: "rxe0".into(),
            port: 1,
            link_losses: 2,
            losses: vec![("retries-exceeded", 1)],
            ..Figures::default()
        };
        figures.counters.writes = 77;
        (figures, folder)
    }
}
