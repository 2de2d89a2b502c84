//! Three members of one group, each with a polling thread, send at the same time and deliver
//! everything in one order. They are threads of one process here; in separate processes the code is
//! the same.
//!
//! ```text
//! cargo run --release --example three_members
//! ```

use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::group::{Description, Messages, StartOptions, start};

const MEMBERS: u32 = 3;
const MESSAGES: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs one member: starts it, sends, and returns what it delivered, in order.
fn member(name: &str, node: u32, through: &Barrier) -> Result<Vec<String>, Failure> {
    // All members must describe the group identically: nodes, senders, slots per sender, largest
    // message.
    let group =
        Description::builder(name).nodes(MEMBERS).window(8).message_max(64).fixed().build()?;
    let options = StartOptions { time_limit: TIMEOUT, ..StartOptions::new(node) };

    // Deliveries come in batches, on the polling thread. Payloads are only lent, so the program
    // copies what it keeps.
    let (deliver, delivered) = mpsc::channel();
    let application = move |messages: &mut Messages<'_, '_>| {
        for message in messages {
            let text = String::from_utf8_lossy(message.payload).into_owned();
            // This fails once everything has arrived, because the receiver has been dropped by
            // then.
            let _ = deliver.send(format!("{:>2} from {}: {text}", message.place, message.sender));
        }
    };
    let running = start(group, options, application)?;

    let mut sender = running.sender_of(SubgroupId::ZERO).ok_or("this member does not send")?;
    for number in 0..MESSAGES {
        let text = format!("message {number} of member {node}");
        // The message is built in place, in a slot of the local ring, which is sent as it is.
        // `send` copies the message instead.
        let mut slot = sender.reserve(text.len(), TIMEOUT)?;
        slot.payload().copy_from_slice(text.as_bytes());
        slot.commit();
    }

    let all = MEMBERS as usize * MESSAGES;
    let sequence =
        (0..all).map(|_| delivered.recv_timeout(TIMEOUT)).collect::<Result<Vec<_>, _>>()?;
    // The other members lose a member that leaves, so none leaves before all have delivered
    // everything.
    through.wait();
    // From here on, it is not an error if other members leave first, so the program does not ask
    // `close` for the reason.
    drop(running);
    Ok(sequence)
}

fn main() -> Result<(), Failure> {
    let name = format!("example-{}", std::process::id());
    let through = Arc::new(Barrier::new(MEMBERS as usize));
    let members: Vec<_> = (0..MEMBERS)
        .map(|node| {
            let (name, through) = (name.clone(), Arc::clone(&through));
            std::thread::spawn(move || member(&name, node, &through))
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
