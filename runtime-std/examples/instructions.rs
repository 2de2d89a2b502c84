//! The cost of a message in instructions: members of one group in one process, stepped in turn by
//! one thread, so that a count is reproducible.
//!
//! ```sh
//! cargo build --release -p tramontane-runtime --example instructions
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     '--toggle-collect=*instructions*drive*' \
//!     target/release/examples/instructions fixed 2 1 run 1000
//! ```
//!
//! counts the instructions of 1000 messages of 1 byte from each of 2 members of a group with fixed
//! membership. Repeat the count with another number of messages: the difference is the cost of the
//! messages alone. `changing` instead of `fixed` selects a group whose membership may change. `run`
//! sends as many messages at once as there are free slots, `each` takes one slot at a time, and
//! `one` sends one message and waits until all members have delivered it.

use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::group::{
    Application, Description, Membership, Messages, StartOptions, Stepped, start_stepped,
};

/// The messages to send.
struct Plan {
    bytes: usize,
    way: String,
    messages: u64,
}

/// Reads a byte of each message.
#[derive(Default)]
struct Read {
    delivered: u64,
    sum: u64,
}

impl Application for Read {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        for message in messages {
            self.sum += u64::from(message.payload[0]);
            self.delivered += 1;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, membership, nodes, bytes, way, messages] = &arguments[..] else {
        return Err("usage: instructions fixed|changing NODES BYTES run|each|one MESSAGES".into());
    };
    let nodes: u32 = nodes.parse()?;
    let plan = Plan { bytes: bytes.parse()?, way: way.clone(), messages: messages.parse()? };
    let slot_bytes = u32::try_from(plan.bytes)?.max(8);
    let mut group = Description::builder(&format!("instructions-{}", std::process::id()))
        .nodes(nodes)
        .message_max(slot_bytes)
        // Heartbeats are so rare that none is sent during a count, however slow the counting is.
        .heartbeat_ms(600_000, 3_600_000)
        .build()?;
    if membership == "fixed" {
        group.membership = Membership::Fixed;
    }
    let members = std::thread::scope(|scope| {
        let start = |node| {
            let group = group.clone();
            scope.spawn(move || start_stepped(group, StartOptions::new(node), Read::default()))
        };
        let threads: Vec<_> = (0..nodes).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<_, _>>()
    });
    println!("{}", drive(members?, &plan)?);
    Ok(())
}

/// Sends and delivers all messages. The instructions of this function are counted.
#[inline(never)]
fn drive(mut members: Vec<Stepped<Read>>, plan: &Plan) -> Result<u64, Box<dyn std::error::Error>> {
    let count = members.len() as u64;
    let mut senders: Vec<_> =
        members.iter().filter_map(|member| member.sender_of(SubgroupId(0))).collect();
    let mut sent = vec![0_u64; members.len()];
    let mut delivered = 0;
    while delivered < plan.messages * count * count {
        for (index, member) in members.iter_mut().enumerate() {
            let (sender, left) = (&mut senders[index], plan.messages - sent[index]);
            match plan.way.as_str() {
                "run" if left > 0 => {
                    if let Ok(mut run) = sender.try_reserve_run(left.min(1000) as u32) {
                        while let Some(mut slot) = run.next(plan.bytes)? {
                            slot.payload().fill(7);
                            slot.commit();
                            sent[index] += 1;
                        }
                    }
                }
                "each" if left > 0 => {
                    for _ in 0..left.min(100) {
                        let Ok(mut slot) = sender.try_reserve(plan.bytes) else { break };
                        slot.payload().fill(7);
                        slot.commit();
                        sent[index] += 1;
                    }
                }
                // Each member sends one message at a time.
                "one" if left > 0 && delivered >= sent[0] * count * count => {
                    sender.send_with(plan.bytes, Duration::ZERO, |payload| payload.fill(7))?;
                    sent[index] += 1;
                }
                _ => {}
            }
            delivered += member.step()?.progress.delivered;
        }
    }
    let sum = members.iter_mut().map(|member| member.application().sum).sum();
    // Dropping them would add instructions to the count.
    std::mem::forget((members, senders));
    Ok(sum)
}
