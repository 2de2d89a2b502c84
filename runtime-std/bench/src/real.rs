//! Continuous sending with real processes: over shared memory or TCP, alternating with a probe
//! without a protocol, or over RDMA.

use std::io::Write as _;

use tempfile::NamedTempFile;

use crate::command::Multicast;
use crate::error::BenchError;
use crate::experiment;
use crate::member::{SendFigures, Sending};
use crate::mesh::BareMesh;
use crate::options::{Drive, switches_without, techniques};
use crate::probe::BareRing;
use crate::processes::{self, Placement, Start};
use crate::report::{Probe, Row};
use crate::spread::{Spread, median};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::name;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;

/// Returns the default number of messages per sender: about half a second's worth on a machine that
/// touches 10 GB per second, or on a 4 GB/s network.
pub(crate) fn messages_default(carrier: Carrier, bytes: u32, nodes: u16) -> u64 {
    let cost = match carrier {
        Carrier::SharedMemory => 30 + u64::from(bytes) / 8,
        Carrier::Tcp | Carrier::Verbs => 500 + u64::from(bytes) / 4,
    };
    (500_000_000 / cost / u64::from(nodes.max(2) - 1)).max(1_000)
}

/// Duration of the bare mesh's measurement: as long as a run with the default number of messages.
const MESH_COUNT_MS: u64 = 1_000;

/// Runs all rounds of one configuration.
///
/// # Errors
/// [`BenchError`].
pub fn run(
    arguments: &Multicast,
    nodes: u16,
    bytes: u32,
    interrupts: &Interrupts,
) -> Result<Row, BenchError> {
    let carrier = arguments.fabric;
    if arguments.probe {
        check_probe(carrier, nodes)?;
    }
    if arguments.rounds == 0 {
        return Err(BenchError::Arguments("--rounds is 0; give at least 1".into()));
    }
    let senders = arguments.senders.of(nodes);
    let switches = switches_without(&arguments.without);
    let group = || {
        let group = experiment::group(nodes, senders, arguments.window, bytes);
        if arguments.changing { group } else { group.fixed() }
    };
    // Deleted at the end.
    let key = arguments.key.then(|| key_file(carrier)).transpose()?;
    let unencrypted = group().build()?;
    let group = match &key {
        Some(file) => group().key_file(file.path()).build()?,
        None => unencrypted.clone(),
    };
    let sending = Sending {
        message_bytes: bytes as usize,
        messages: arguments.messages.unwrap_or_else(|| messages_default(carrier, bytes, nodes)),
        switch_bits: switches.bits(),
        untouched: arguments.untouched,
        drive: arguments.drive,
    };
    // A polling thread and a sender in one process must not be pinned to the same processor.
    let placement = match (arguments.unpinned, arguments.drive) {
        (false, Drive::Caller) => Placement::Spread,
        _ => Placement::Free,
    };
    let start = Start { carrier, device: &arguments.device.options(), placement, interrupts };
    let mut rates = Vec::new();
    let mut foreign = Vec::new();
    let mut probes = Vec::new();
    let mut last = Vec::new();
    for _ in 0..arguments.rounds {
        if arguments.probe {
            probes.push(probe(&group, &sending, &start)?);
        } else if arguments.key {
            let sent = processes::run(&unencrypted, &sending, &start)?;
            probes.push(median_of(&sent, |sent| sent.messages_per_s));
        }
        last = processes::run(&group, &sending, &start)?;
        rates.push(median_of(&last, |sent| sent.messages_per_s));
        foreign.push(foreign_rate_of(&last, senders) * f64::from(bytes));
    }
    let sent = sending.messages * u64::from(senders);
    let writes: u64 = last.iter().map(|outcome| outcome.writes).sum();
    let peers = u64::from(nodes.saturating_sub(1)).max(1);
    let rate = Spread::of(&rates);
    let is_counted = arguments.drive == Drive::Caller;
    Ok(Row {
        fabric: carrier.name(),
        nodes,
        senders,
        bytes,
        window: arguments.window,
        drive: name(&arguments.drive),
        techniques: techniques(switches),
        messages_per_s: rate,
        bytes_per_s: rate.median * f64::from(bytes),
        writes_per_message: is_counted.then_some(writes as f64 / sent as f64 / peers as f64),
        nulls: is_counted.then(|| last.iter().map(|outcome| outcome.nulls).sum()),
        probe: match carrier {
            _ if probes.is_empty() => None,
            _ if arguments.key => Some(Probe::Unencrypted {
                messages_per_s: Spread::of(&probes),
                ratio: ratios(&rates, &probes),
            }),
            Carrier::Tcp => Some(Probe::Mesh {
                received_bytes_per_s: Spread::of(&probes),
                delivered_bytes_per_s: Spread::of(&foreign),
                ratio: ratios(&foreign, &probes),
            }),
            Carrier::SharedMemory | Carrier::Verbs => Some(Probe::Ring {
                messages_per_s: Spread::of(&probes),
                ratio: ratios(&rates, &probes),
            }),
        },
        counts: last.iter().filter_map(|outcome| outcome.posts).collect(),
    })
}

/// Creates the key of a group over TCP. Only this user can read the file.
pub(crate) fn key_file(carrier: Carrier) -> Result<NamedTempFile, BenchError> {
    if carrier != Carrier::Tcp {
        let what = "--key encrypts only TCP: leave it out, or give --fabric tcp";
        return Err(BenchError::Arguments(what.into()));
    }
    let file = NamedTempFile::new().and_then(|mut file| {
        // The measured group is of this machine alone, and needs no secret.
        file.write_all(&[b'7'; 64])?;
        Ok(file)
    });
    file.map_err(|error| BenchError::Setup(format!("cannot write a key file: {error}")))
}

/// Checks that there is a probe of that fabric for this number of members.
fn check_probe(carrier: Carrier, nodes: u16) -> Result<(), BenchError> {
    let what = match (carrier, nodes) {
        (Carrier::SharedMemory, 2) | (Carrier::Tcp, 2..) => return Ok(()),
        (Carrier::SharedMemory, _) => {
            "--probe compares the group with a ring of two processes; omit it, or use --nodes 2 \
             (over TCP, 2 or more)"
        }
        (Carrier::Tcp, _) => {
            "--probe compares the group with a mesh of the same number of processes; omit it, or \
             use --nodes 2 or more"
        }
        (Carrier::Verbs, _) => {
            "--probe measures only shared memory and TCP; omit it, or use --fabric shm or tcp \
             (hal-verbs/lab/ratios compares RDMA with perftest)"
        }
    };
    Err(BenchError::Arguments(what.into()))
}

/// Returns the rate of the probe's median process: messages per second of the bare ring, bytes per
/// second of the bare mesh.
fn probe(group: &Description, sending: &Sending, start: &Start<'_>) -> Result<f64, BenchError> {
    match start.carrier {
        // The mesh is placed like the members: its threads wait in the kernel as the members'
        // threads do.
        Carrier::Tcp => {
            let mesh = BareMesh { count_ms: MESH_COUNT_MS };
            let received = processes::run(group, &mesh, start)?;
            Ok(median_of(&received, |received| received.bytes_per_s))
        }
        Carrier::SharedMemory | Carrier::Verbs => {
            let Sending { message_bytes, messages, .. } = *sending;
            let ring = BareRing { message_bytes, messages: 2 * messages };
            let start = Start { placement: Placement::Spread, ..*start };
            let ringed = processes::run(group, &ring, &start)?;
            Ok(median_of(&ringed, |ringed| ringed.messages_per_s))
        }
    }
}

/// Returns, for each round, the run's rate divided by the probe's.
fn ratios(rates: &[f64], probes: &[f64]) -> Spread {
    Spread::of(&rates.iter().zip(probes).map(|(rate, probe)| rate / probe).collect::<Vec<_>>())
}

/// Returns the number of other members' messages that the median member delivers per second. All
/// members deliver the same messages, with equal numbers from each sender.
fn foreign_rate_of(outcomes: &[SendFigures], senders: u16) -> f64 {
    let foreign = |(rank, outcome): (usize, &SendFigures)| {
        let own = if rank < usize::from(senders) { 1.0 / f64::from(senders) } else { 0.0 };
        outcome.messages_per_s * (1.0 - own)
    };
    median(&outcomes.iter().enumerate().map(foreign).collect::<Vec<_>>())
}

/// Returns a figure at the median process.
fn median_of<O>(outcomes: &[O], figure: impl Fn(&O) -> f64) -> f64 {
    median(&outcomes.iter().map(figure).collect::<Vec<_>>())
}
