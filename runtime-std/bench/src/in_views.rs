//! One process that sends continuously in a group whose membership may change.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::ids::SubgroupId;

use crate::error::BenchError;
use crate::experiment::{Experiment, JOIN_LIMIT, Kind, Member};
use crate::processes::{self, Placement, Start};
use crate::spread::median;
use crate::touch;
use tramontane_local::group::LocalPlace;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::configuration::GroupConfiguration;
use tramontane_runtime::group::{
    Description, Forming, Messages, NodeDescription, Sender, StartOptions, start,
};
use tramontane_runtime::member::{SendError, Settings};
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;

/// Continuous sending in a group whose membership may change; each byte is written and read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InViews {
    pub(crate) message_bytes: usize,
    /// Of each sender.
    pub(crate) messages: u64,
    pub(crate) heartbeat_ms: u64,
}

/// What one process of [`InViews`] saw.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Delivered {
    /// From the first delivery to the last, own and peers' together.
    pub(crate) messages_per_s: f64,
    /// Of the bytes read: keeps them read.
    pub(crate) checksum: u64,
}

impl Experiment for InViews {
    const KIND: Kind = Kind::InViews;
    type Outcome = Delivered;

    fn run(&self, member: &Member) -> Result<Delivered, BenchError> {
        send_and_deliver(self, member)
    }
}

fn send_and_deliver(task: &InViews, member: &Member) -> Result<Delivered, BenchError> {
    let total = member.messages_of_all(task.messages);
    let (done, finished) = sync_channel(1);
    let (mut delivered, mut checksum) = (0_u64, 0_u64);
    let mut begun = None;
    let application = move |messages: &mut Messages<'_, '_>| {
        let begun = begun.get_or_insert_with(Instant::now);
        for message in messages {
            checksum = checksum.wrapping_add(touch::read(message.payload));
            delivered += 1;
        }
        if delivered == total {
            let _ = done.try_send((begun.elapsed(), checksum));
        }
    };
    let never = AtomicBool::new(false);
    let Described { description, listener, device } = describe(task, member)?;
    let options = StartOptions {
        node: member.node,
        root: Root::from_env(),
        listener,
        device,
        time_limit: JOIN_LIMIT,
        cancel: &never,
        settings: Settings::default(),
        forming: Forming { new_group: true, ..Forming::default() },
        ..StartOptions::new(member.node)
    };
    let running = start(description, options, application)
        .map_err(|error| BenchError::Setup(error.to_string()))?;
    match running.sender(SubgroupId(0)) {
        Some(sender) if task.message_bytes > sender.message_max() => send_large(sender, task)?,
        Some(sender) => send_all(sender, task)?,
        None => {}
    }
    let (elapsed, checksum) = finished.recv_timeout(Duration::from_secs(60)).map_err(|_| {
        running.stopped().map_or_else(
            || BenchError::Setup("the last message did not arrive within 60 s".into()),
            |stopped| SendError::Stopped(stopped).into(),
        )
    })?;
    std::thread::sleep(Duration::from_millis(300));
    drop(running);
    let messages_per_s = total.saturating_sub(1) as f64 / elapsed.as_secs_f64();
    Ok(Delivered { messages_per_s, checksum })
}

fn send_all(mut sender: Sender, task: &InViews) -> Result<(), BenchError> {
    let mut sent = 0;
    while sent < task.messages {
        let most = u32::try_from(task.messages - sent).unwrap_or(u32::MAX);
        if let Ok(mut run) = sender.try_reserve_run(most) {
            while let Ok(Some(mut slot)) = run.next(task.message_bytes) {
                touch::write(slot.payload(), sent);
                slot.commit();
                sent += 1;
            }
            continue;
        }
        // Waits for one slot; the others are taken at once again.
        sender.send_with(task.message_bytes, JOIN_LIMIT, |payload| touch::write(payload, sent))?;
        sent += 1;
    }
    Ok(())
}

fn send_large(mut sender: Sender, task: &InViews) -> Result<(), BenchError> {
    let setup = |error: &dyn std::fmt::Display| BenchError::Setup(error.to_string());
    for number in 0..task.messages {
        let mut buffer = sender.buffer(task.message_bytes).map_err(|error| setup(&error))?;
        touch::write(&mut buffer[..task.message_bytes], number);
        sender.send_large(buffer, task.message_bytes, JOIN_LIMIT).map_err(|error| setup(&error))?;
    }
    Ok(())
}

/// A group of this machine in views, as one of its members starts in it.
struct Described {
    description: Description,
    listener: Option<tramontane_control::Listener>,
    device: DeviceOptions,
}

fn describe(task: &InViews, member: &Member) -> Result<Described, BenchError> {
    let setup = |error: &dyn std::fmt::Display| BenchError::Setup(error.to_string());
    let nodes = u32::try_from(member.group.members.len()).unwrap_or(u32::MAX);
    let subgroup = &member.group.subgroups[0];
    let mut description = Description::local("bench", nodes, subgroup.window, subgroup.message_max);
    description.heartbeat_ms = task.heartbeat_ms;
    description.failure_timeout_ms = task.heartbeat_ms.max(2_000) * 3;
    let mut device = DeviceOptions::default();
    match &member.place {
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
    let listener = member
        .place
        .listener()
        .map(TryInto::try_into)
        .transpose()
        .map_err(|error| setup(&error))?;
    description.subgroups[0].senders =
        Some(subgroup.senders.iter().copied().map(u32::from).collect());
    if task.message_bytes > subgroup.message_max as usize {
        description.subgroups[0].large_max = task.message_bytes as u64;
    }
    description.complete().map_err(|error| setup(&error))?;
    Ok(Described { description, listener, device })
}

/// Messages a second at the median member of a group of this machine.
pub(crate) fn messages_per_s(
    carrier: Carrier,
    group: &GroupConfiguration,
    in_views: &InViews,
    interrupts: &Interrupts,
) -> Result<f64, BenchError> {
    let device = DeviceOptions::default();
    let start = Start { carrier, device: &device, placement: Placement::Spread, interrupts };
    let outcomes = processes::run(group, in_views, &start)?;
    Ok(median(&outcomes.iter().map(|outcome| outcome.messages_per_s).collect::<Vec<_>>()))
}
