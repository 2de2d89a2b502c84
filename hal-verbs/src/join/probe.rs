//! The first write to each peer, before the barrier: a way that leads nowhere is told at the start, by whom it
//! is about, and not as the loss of a peer in the middle of the first message.
//!
//! An address that looks right and leads nowhere is the classic silent failure (HAL-3): GID 0 is one, a firewall
//! that keeps RoCE's UDP port another. TCP, over which members meet, may take another way and show nothing.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tramontane_mesh::MeshError;

use super::JoinError;
use super::build::Builder;
use crate::fabric::Purpose;
use crate::ffi::{BATCH, Completion, Operation, SendBuffers};
use crate::protocol::{Counters, Name};
use crate::status::WorkStatus;

/// How long a wait lasts before it is looked whether to stop.
const SLICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Devices may take so many times as long to give up as they were told to.
const SLOWNESS: u32 = 5;

/// Writes nothing to everybody, and waits until everybody's device has answered. All must be connected.
pub(super) fn probe(
    builder: &mut Builder<'_>,
    loss_time: Duration,
    cancel: &AtomicBool,
) -> Result<(), JoinError> {
    let mut buffers = SendBuffers::new();
    let mut open = 0_usize;
    for index in 0..builder.links.len() {
        if builder.links[index].purpose != Purpose::Row {
            continue;
        }
        // Not one of those that the fabric counts.
        let mut counters = Counters::default();
        let link = &mut builder.links[index];
        let posted = link.post_one(&mut buffers, Operation::Write, None, None, true, &mut counters);
        posted.map_err(|source| builder.site.failed("write", source))?;
        open += 1;
    }
    let until = Instant::now() + loss_time * SLOWNESS;
    let mut batch = [Completion::default(); BATCH];
    while open > 0 {
        if cancel.load(Ordering::Relaxed) {
            return Err(MeshError::Cancelled.into());
        }
        if Instant::now() > until {
            return Err(no_answer(builder, None, WorkStatus::RetriesExceeded));
        }
        // Asked for first and then looked: what comes between the two is seen.
        builder
            .completions
            .notify()
            .map_err(|source| builder.site.failed("ask for completions", source))?;
        let taken = builder.completions.take(&mut batch);
        let taken = taken.map_err(|source| builder.site.failed("take completions", source))?;
        for completion in &batch[..taken] {
            let name = Name::from_raw(completion.name);
            let status = WorkStatus::from_raw(completion.status);
            if status != WorkStatus::Success {
                return Err(no_answer(builder, Some(name.link()), status));
            }
            if let Some(link) = builder.links.get_mut(name.link()) {
                open -= usize::from(!name.is_receive() && link.queue.complete(name.number_from(0)));
            }
        }
        if taken == 0 {
            let mut descriptors = [PollFd::new(&*builder.completions, PollFlags::IN)];
            // An interrupted wait is a short one.
            let _ = poll(&mut descriptors, Some(&SLICE));
        }
        while builder.completions.take_event() {}
    }
    Ok(())
}

/// About the peer at the other end of a connection, or else of the first that has not answered.
fn no_answer(builder: &Builder<'_>, link: Option<usize>, status: WorkStatus) -> JoinError {
    let links = &builder.links;
    let silent = || links.iter().find(|link| link.queue.in_flight() > 0);
    let Some(link) = link.and_then(|index| links.get(index)).or_else(silent) else {
        return builder.site.failed("write", ErrorKind::Other.into());
    };
    JoinError::NoAnswer {
        device: builder.site.device().name.clone(),
        peer: builder.rows.members()[link.peer.index()],
        own: builder.site.choice().gid.address,
        theirs: link.remote_gid(),
        status,
    }
}
