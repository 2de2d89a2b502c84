//! A replicated counter whose members come and go: one is killed in the middle, and returns with
//! the state.
//!
//! The members are threads of one process here; in separate processes the code is the same.
//!
//! ```text
//! cargo run --release --example a_counter
//! ```

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_runtime::group::{
    Application, Description, Forming, Messages, Running, StartOptions, ViewChanged, start,
};
use tramontane_runtime::member::Settings;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::{GroupName, Root};

const TIMEOUT: Duration = Duration::from_secs(20);
const COUNTER: SubgroupId = SubgroupId(0);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One member's sum of all numbers that were sent.
struct Counter(Arc<AtomicU64>);

impl Application for Counter {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        for message in messages {
            let number =
                message.payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            self.0.fetch_add(number, Ordering::Relaxed);
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        println!("member {}: view {} is {:?}", change.own, change.view.id, change.view.members);
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        Box::new(Cursor::new(self.0.load(Ordering::Relaxed).to_le_bytes()))
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let sum = match bytes.as_slice() {
            // An empty state is the initial one.
            [] => 0,
            bytes => u64::from_le_bytes(bytes.try_into().map_err(std::io::Error::other)?),
        };
        self.0.store(sum, Ordering::Relaxed);
        Ok(())
    }
}

/// Starts a member, in the first view or in the running group.
fn join(group: &Description, node: u32) -> Result<(Running, Arc<AtomicU64>), Failure> {
    let sum = Arc::new(AtomicU64::new(0));
    let options = StartOptions {
        node,
        root: Root::from_env(),
        listener: None,
        device: DeviceOptions::default(),
        time_limit: TIMEOUT,
        cancel: &AtomicBool::new(false),
        settings: Settings::default(),
        forming: Forming::default(),
        ..StartOptions::new(node)
    };
    Ok((start(group.clone(), options, Counter(Arc::clone(&sum)))?, sum))
}

fn add(running: &Running, number: u64) -> Result<(), Failure> {
    let mut sender = running.sender_of(COUNTER).ok_or("every member sends")?;
    sender.send(&number.to_le_bytes(), TIMEOUT)?;
    Ok(())
}

fn await_sum(sum: &AtomicU64, wanted: u64) -> Result<(), Failure> {
    let started = Instant::now();
    while sum.load(Ordering::Relaxed) != wanted {
        if started.elapsed() > TIMEOUT {
            return Err(format!("the sum is {}, not {wanted}", sum.load(Ordering::Relaxed)).into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    // A unique name separates this run from others; a real group would have a fixed name.
    let group = Description::local(GroupName::unique("counter")?.as_str(), 3, 8, 8);
    let (first, second, third) = std::thread::scope(|scope| {
        let [first, second, third] = [0, 1, 2].map(|node| {
            let group = &group;
            scope.spawn(move || join(group, node))
        });
        (first.join(), second.join(), third.join())
    });
    let panicked = |_| Failure::from("a member panicked");
    let (first, first_sum) = first.map_err(panicked)??;
    let (second, second_sum) = second.map_err(panicked)??;
    let (third, _) = third.map_err(panicked)??;

    add(&first, 1)?;
    add(&third, 10)?;
    await_sum(&first_sum, 11)?;
    // The member ends without notice; the others detect this, and continue.
    drop(third);
    add(&second, 100)?;
    await_sum(&first_sum, 111)?;
    // The member returns as a new process, and receives the state.
    let (third, third_sum) = join(&group, 2)?;
    add(&third, 1000)?;
    for sum in [&first_sum, &second_sum, &third_sum] {
        await_sum(sum, 1111)?;
    }
    println!("all have 1111");
    third.leave(TIMEOUT)?;
    second.leave(TIMEOUT)?;
    first.leave(TIMEOUT)?;
    Ok(())
}
