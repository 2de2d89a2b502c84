//! The paper's continuous sending in a group whose membership may change: what heartbeats cost.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;

use super::command::Views;
use super::processes::{self, Placement, Spread, Start};
use super::worker::{JOIN_LIMIT, Kind, Outcome, Task, totals};
use super::{BenchError, touch};
use crate::configuration::GroupConfiguration;
use crate::group::{Description, Forming, Messages, NodeDescription, Sender, StartOptions, start};
use crate::local::{Carrier, LocalPlace};
use crate::member::{SendError, Settings};
use crate::rdma::DeviceOptions;
use crate::shared_memory::Root;
use tramontane_core::multicast::Switches;

/// A heartbeat so rare that a run sees none.
const NO_HEARTBEAT_MS: u64 = 600_000;

/// Messages of each sender in a round.
const MESSAGES: u64 = 400_000;

/// Bytes of each.
const BYTES: u32 = 1_024;

/// One process.
pub(super) fn run(task: &Task, heartbeat_ms: u64) -> Result<Outcome, BenchError> {
    let total = totals(task);
    let (done, finished) = sync_channel(1);
    let (mut delivered, mut sum) = (0_u64, 0_u64);
    let mut begun = None;
    let untouched = task.untouched;
    let application = move |messages: &mut Messages<'_, '_>| {
        let begun = begun.get_or_insert_with(Instant::now);
        for message in messages {
            if !untouched {
                sum = sum.wrapping_add(touch::read(message.payload));
            }
            delivered += 1;
        }
        if delivered == total {
            let _ = done.try_send((begun.elapsed(), sum));
        }
    };
    let never = AtomicBool::new(false);
    let Described { description, listener, device } = describe(task, heartbeat_ms)?;
    let options = StartOptions {
        node: task.node,
        root: Root::from_env(),
        listener,
        device,
        time_limit: JOIN_LIMIT,
        cancel: &never,
        settings: Settings::default(),
        forming: Forming { new_group: true, ..Forming::default() },
    };
    let running = start(description, options, application)
        .map_err(|error| BenchError::Setup(error.to_string()))?;
    match running.sender(SubgroupId(0)) {
        Some(sender) if task.bytes > sender.message_max() => send_large(sender, task)?,
        Some(sender) => send_all(sender, task)?,
        None => {}
    }
    let (elapsed, sum) = finished.recv_timeout(Duration::from_secs(60)).map_err(|_| {
        running.stopped().map_or_else(
            || BenchError::Setup("the last message did not arrive within 60 s".into()),
            |stopped| SendError::Stopped(stopped).into(),
        )
    })?;
    let writes = running.writes();
    std::thread::sleep(Duration::from_millis(300));
    drop(running);
    Ok(Outcome {
        // From the first delivery to the last.
        rate: total.saturating_sub(1) as f64 / elapsed.as_secs_f64(),
        delivered: total,
        sum,
        writes,
        ..Outcome::default()
    })
}

fn send_all(mut sender: Sender, task: &Task) -> Result<(), BenchError> {
    let touch = |payload: &mut [u8], number| {
        if !task.untouched {
            touch::write(payload, number);
        }
    };
    let mut sent = 0;
    while sent < task.messages {
        let most = u32::try_from(task.messages - sent).unwrap_or(u32::MAX);
        if let Ok(mut run) = sender.try_reserve_run(most) {
            while let Ok(Some(mut slot)) = run.next(task.bytes) {
                touch(slot.payload(), sent);
                slot.commit();
                sent += 1;
            }
            continue;
        }
        // Waits for one slot; the others are taken at once again.
        sender.send_with(task.bytes, JOIN_LIMIT, |payload| touch(payload, sent))?;
        sent += 1;
    }
    Ok(())
}

fn send_large(mut sender: Sender, task: &Task) -> Result<(), BenchError> {
    let setup = |error: &dyn std::fmt::Display| BenchError::Setup(error.to_string());
    for number in 0..task.messages {
        let mut buffer = sender.buffer(task.bytes).map_err(|error| setup(&error))?;
        if !task.untouched {
            touch::write(&mut buffer[..task.bytes], number);
        }
        sender.send_large(buffer, task.bytes, JOIN_LIMIT).map_err(|error| setup(&error))?;
    }
    Ok(())
}

/// A group of this machine in views, as one of its members starts in it.
struct Described {
    description: Description,
    listener: Option<tramontane_mesh::Listener>,
    device: DeviceOptions,
}

fn describe(task: &Task, heartbeat_ms: u64) -> Result<Described, BenchError> {
    let setup = |error: &dyn std::fmt::Display| BenchError::Setup(error.to_string());
    let nodes = u32::try_from(task.group.members.len()).unwrap_or(u32::MAX);
    let subgroup = &task.group.subgroups[0];
    let mut description = Description::local("bench", nodes, subgroup.window, subgroup.message_max);
    description.heartbeat_ms = heartbeat_ms;
    description.failure_timeout_ms = heartbeat_ms.max(2_000) * 3;
    let mut device = DeviceOptions::default();
    match &task.place {
        LocalPlace::SharedMemory(name) => description.name.clone_from(name),
        LocalPlace::Network { addresses, device: wanted, .. } => {
            description.fabric = if wanted.is_some() { Carrier::Verbs } else { Carrier::Tcp };
            device = wanted.clone().unwrap_or_default();
            let node = |(id, address): (u32, _)| NodeDescription {
                id,
                address: Some(address),
                state: None,
            };
            description.nodes = (0..).zip(addresses.iter().copied()).map(node).collect();
        }
    }
    let listener =
        task.place.listener().map(TryInto::try_into).transpose().map_err(|error| setup(&error))?;
    description.subgroups[0].senders =
        Some(subgroup.senders.iter().copied().map(u32::from).collect());
    if task.bytes > subgroup.message_max as usize {
        description.subgroups[0].large_max = task.bytes as u64;
    }
    description.complete().map_err(|error| setup(&error))?;
    Ok(Described { description, listener, device })
}

/// Continuous sending in views without heartbeats, each byte written and read.
pub(super) fn task(group: GroupConfiguration, bytes: usize, messages: u64) -> Task {
    Task {
        place: LocalPlace::default(),
        node: 0,
        group,
        bytes,
        messages,
        processor: None,
        switches: Switches::all().bits(),
        untouched: false,
        delay_ns: 0,
        delayed: 0,
        kind: Kind::InViews(NO_HEARTBEAT_MS),
    }
}

/// Messages a second at the median member.
pub(super) fn rate(carrier: Carrier, task: &Task) -> Result<f64, BenchError> {
    let device = DeviceOptions::default();
    let outcomes =
        processes::run(task, &Start { carrier, device: &device, placement: Placement::Spread })?;
    Ok(processes::median(&outcomes.iter().map(|outcome| outcome.rate).collect::<Vec<_>>()))
}

/// Throughput with heartbeats by that without, in turn.
pub(super) fn steady(arguments: &Views) -> Result<SteadyReport, BenchError> {
    let group = GroupConfiguration::single(arguments.nodes, arguments.nodes, 100, BYTES);
    let task = task(group, BYTES as usize, MESSAGES);
    let rate = |kind| rate(arguments.fabric, &Task { kind, ..task.clone() });
    let (mut with, mut without, mut fixed, mut ratios) = (vec![], vec![], vec![], vec![]);
    for round in 0..arguments.rounds {
        // Whichever comes first in a round finds the machine a little warmer or colder.
        let mut measured = [0.0, 0.0];
        let kinds = [Kind::InViews(arguments.heartbeat_ms), Kind::InViews(NO_HEARTBEAT_MS)];
        for index in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            measured[index] = rate(kinds[index])?;
        }
        with.push(measured[0]);
        without.push(measured[1]);
        ratios.push(measured[0] / measured[1]);
        fixed.push(rate(Kind::Polled)?);
    }
    Ok(SteadyReport {
        machine: super::report::machine(),
        fabric: arguments.fabric.name(),
        nodes: arguments.nodes,
        heartbeat_ms: arguments.heartbeat_ms,
        with: Spread::of(&with),
        without: Spread::of(&without),
        fixed: Spread::of(&fixed),
        ratio: Spread::of(&ratios),
    })
}

/// What `bench views --steady` prints.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SteadyReport {
    machine: String,
    fabric: &'static str,
    nodes: u16,
    heartbeat_ms: u64,
    /// Messages a second at a member, with heartbeats.
    with: Spread,
    /// Without any.
    without: Spread,
    /// In a group of fixed membership, driven in the same way.
    fixed: Spread,
    /// With heartbeats by without, round by round.
    ratio: Spread,
}

impl SteadyReport {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |what: &str, spread: &Spread| {
            let Spread { median, min, max } = spread;
            format!("{what:24} {:10.0} ({:.0}..{:.0})\n", median, min, max)
        };
        format!(
            "{}\n{} members over {}, all send, {BYTES} bytes: messages a second at a member\n{}{}{}with heartbeats by without: {:.3} ({:.3}..{:.3})\n",
            self.machine,
            self.nodes,
            self.fabric,
            line(&format!("heartbeat {} ms", self.heartbeat_ms), &self.with),
            line("no heartbeats", &self.without),
            line("fixed membership", &self.fixed),
            self.ratio.median,
            self.ratio.min,
            self.ratio.max,
        )
    }
}
