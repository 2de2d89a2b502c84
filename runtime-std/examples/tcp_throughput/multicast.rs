//! Atomic multicast over the TCP fabric: one loop that sends while slots are free, and steps.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_core::ids::{Rank, SubgroupId};
use tramontane_core::multicast::Batch;
use tramontane_mesh::SharedKey;
use tramontane_runtime::configuration::GroupConfiguration;
use tramontane_runtime::member::{FIXED_VIEW, Idle, Member, Settings};
use tramontane_runtime::tcp::{self, Tcp, TcpOptions, meet};

use super::{Failure, MARGIN, Options, Seen};

/// What was delivered so far.
#[derive(Clone, Copy, Debug, Default)]
struct Delivered {
    messages: u64,
    foreign_bytes: u64,
    sum: u64,
}

/// Sends and delivers for a while, and says what was delivered while it counted.
pub fn run(options: &Options, rank: u16) -> Result<Seen, Failure> {
    let mut member = join(options, rank)?;
    let sender = member.sender(SubgroupId(0)).ok_or("all members send")?;
    let count = Duration::from_millis(options.count_ms);
    let bytes = usize::try_from(options.bytes)?;
    // The kernel wakes who waits for a socket as soon as something comes, so a member that shares its processor
    // does better to wait there than to look again and again.
    let mut idle = Idle::new(Duration::from_micros(options.idle_us));
    let mut delivered = Delivered::default();
    let start = Instant::now();
    let (mut at_start, mut counted) = (None, None);
    loop {
        let elapsed = start.elapsed();
        if elapsed >= MARGIN && at_start.is_none() {
            at_start = Some((elapsed, delivered));
        }
        if let Some((since, before)) = at_start
            && elapsed >= since + count
            && counted.is_none()
        {
            let seconds = (elapsed - since).as_secs_f64();
            counted = Some(Seen {
                received: (delivered.foreign_bytes - before.foreign_bytes) as f64 / seconds,
                delivered: (delivered.messages - before.messages) as f64 / seconds,
            });
        }
        if elapsed >= MARGIN + count + MARGIN {
            break;
        }
        if let Ok(mut run) = sender.try_reserve_run(u32::MAX) {
            while let Ok(Some(mut slot)) = run.next(bytes) {
                if options.touch {
                    slot.payload().fill(7);
                }
                slot.commit();
            }
        }
        let mut take = |batch: &mut Batch<'_>| {
            for message in batch {
                delivered.messages += 1;
                if message.rank != Rank(rank) {
                    delivered.foreign_bytes += message.payload.len() as u64;
                }
                if options.touch {
                    let (words, _) = message.payload.as_chunks::<8>();
                    delivered.sum = words
                        .iter()
                        .fold(delivered.sum, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
                }
            }
        };
        match member.step(&mut take) {
            Ok(progress) if progress.is_idle() => {
                if idle.pause()
                    && let Err(stopped) = member.sleep(&mut take, MARGIN / 10)
                    && counted.is_none()
                {
                    return Err(stopped.into());
                }
            }
            Ok(_) => idle.reset(),
            // Who is through before us leaves.
            Err(_) if counted.is_some() => break,
            Err(stopped) => return Err(stopped.into()),
        }
    }
    member.leave();
    std::hint::black_box(delivered.sum);
    counted.ok_or_else(|| "it stopped before it had counted".into())
}

fn join(options: &Options, rank: u16) -> Result<Member<Tcp>, Failure> {
    let group = GroupConfiguration::single(options.nodes, options.nodes, options.window, options.bytes);
    let own = Rank(rank);
    group.with_layout(|layout| {
        let (fabric, rows) = meet(
            layout,
            own,
            TcpOptions {
                addresses: &options.addresses,
                listener: None,
                view: FIXED_VIEW,
                key: options.keyed.then(|| SharedKey::from_bytes([1; 32])),
                allow_clear: false,
                time_limit: Duration::from_secs(20),
                cancel: &AtomicBool::new(false),
                settings: tcp::Settings { socket_bytes: options.socket_bytes, ..tcp::Settings::default() },
            },
        )?;
        Ok(Member::open(layout, own, rows.lend(), fabric, &Settings::default())?)
    })?
}
