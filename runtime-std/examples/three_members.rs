//! Three members of one group, each with a polling thread, send at the same time and deliver everything in
//! one order. They are threads of one process here; in processes of their own, the code is the same.
//!
//! ```text
//! cargo run --release --example three_members
//! ```

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Batch;
use tramontane_runtime::configuration::GroupConfiguration;
use tramontane_runtime::join::{JoinOptions, Meeting, join};
use tramontane_runtime::member::Settings;
use tramontane_runtime::shared_memory::{GroupName, Root};

const MEMBERS: u16 = 3;
const MESSAGES: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One member: joins, sends, and gives what it delivered, in order.
fn member(name: GroupName, node: u32, through: &Barrier) -> Result<Vec<String>, Failure> {
    // All members must say the same of the group: nodes, senders, slots of a sender, largest message.
    let group = GroupConfiguration::single(MEMBERS, MEMBERS, 8, 64);
    let options = JoinOptions {
        meeting: Meeting::SharedMemory { root: Root::from_env(), name },
        time_limit: TIMEOUT,
        cancel: &AtomicBool::new(false),
        settings: Settings::default(),
    };
    let member = join(&group, node, &options)?;

    // Deliveries come in batches, in the polling thread; payloads are lent, so what is kept is copied.
    let (deliver, delivered) = mpsc::channel();
    let polled = member.spawn(move |batch: &mut Batch<'_>| {
        for message in batch {
            let text = String::from_utf8_lossy(message.payload).into_owned();
            // Nobody listens any more once all is there.
            let _ = deliver.send(format!("{:>2} from {}: {text}", message.place, message.rank));
        }
    })?;

    let sender = polled.sender(SubgroupId::ZERO).ok_or("this member does not send")?;
    for number in 0..MESSAGES {
        let text = format!("message {number} of member {node}");
        // In place: a slot of the own ring, which goes out as it is. `send` copies instead.
        let mut slot = sender.reserve(text.len(), TIMEOUT)?;
        slot.payload().copy_from_slice(text.as_bytes());
        slot.commit();
    }

    let all = usize::from(MEMBERS) * MESSAGES;
    let sequence =
        (0..all).map(|_| delivered.recv_timeout(TIMEOUT)).collect::<Result<Vec<_>, _>>()?;
    // Who leaves is lost to the others; so nobody leaves before all have everything.
    through.wait();
    // To be told that others were faster is no news now, so this drops it and does not ask `close`.
    drop(polled);
    Ok(sequence)
}

fn main() -> Result<(), Failure> {
    let name = GroupName::unique("example")?;
    let through = Arc::new(Barrier::new(usize::from(MEMBERS)));
    let members: Vec<_> = (0..u32::from(MEMBERS))
        .map(|node| {
            let (name, through) = (name.clone(), Arc::clone(&through));
            std::thread::spawn(move || member(name, node, &through))
        })
        .collect();
    let mut sequences = Vec::new();
    for member in members {
        sequences.push(member.join().map_err(|_| "a member panicked")??);
    }
    for line in &sequences[0] {
        println!("{line}");
    }
    assert!(sequences.iter().all(|sequence| *sequence == sequences[0]), "the orders differ");
    println!("all {MEMBERS} members delivered this");
    Ok(())
}
