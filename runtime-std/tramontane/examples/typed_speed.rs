//! Measures proposals against untyped messages of the same bytes, in turn, between members that are
//! threads of this process: `cargo run --release -p tramontane --example typed_speed [MEMBERS]`.
//!
//! Prints, for both, the median rate with many in flight, and the median latency at a low rate.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tramontane::serde::{Deserialize, Serialize};
use tramontane::{
    Description, Messages, Replicated, Running, Sender, StartOptions, StateMachine, start,
};

const PATIENCE: Duration = Duration::from_secs(60);
const ROUNDS: usize = 11;
const COUNT: u32 = 200_000;
const IN_FLIGHT: usize = 1_000;
const PINGS: usize = 500;
/// The time between two messages at a low rate.
const PAUSE: Duration = Duration::from_millis(1);
const COMMAND: [u8; 32] = [7; 32];
/// A command and its version.
const MESSAGE: [u8; 33] = [7; 33];

#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Sum(u64);

impl StateMachine for Sum {
    type Command = [u8; 32];
    type Answer = u64;

    fn apply(&mut self, command: [u8; 32]) -> u64 {
        self.0 += u64::from(command[0]);
        self.0
    }
}

/// Starts all members of a group at the same time.
fn all<R: Send>(name: &str, members: u32, one: impl Fn(Description, u32) -> R + Sync) -> Vec<R> {
    let group = Description::local(&format!("{name}-{}", std::process::id()), members, 100, 64);
    let (group, one) = (&group, &one);
    std::thread::scope(|scope| {
        let start = |node| scope.spawn(move || one(group.clone(), node));
        let starting: Vec<_> = (0..members).map(start).collect();
        starting.into_iter().map(|one| one.join().expect("it starts")).collect()
    })
}

fn untyped(group: Description, node: u32) -> Running {
    let mut sum = 0_u64;
    let application = move |messages: &mut Messages<'_, '_>| {
        for message in messages {
            sum += u64::from(message.payload[0]);
        }
        std::hint::black_box(sum);
    };
    start(group, StartOptions::new(node), application).expect("it starts")
}

fn typed(group: Description, node: u32) -> Replicated<Sum> {
    Replicated::start(group, StartOptions::new(node), Sum(0)).expect("it starts")
}

fn send_all(sender: &mut Sender) {
    let mut receipt = None;
    for _ in 0..COUNT {
        receipt = Some(sender.send(&MESSAGE, PATIENCE).expect("it is sent"));
    }
    let last = receipt.expect("a message");
    last.delivered().wait(PATIENCE).expect("it is delivered");
}

fn propose_all(member: &Replicated<Sum>) {
    let mut in_flight = VecDeque::with_capacity(IN_FLIGHT);
    for _ in 0..COUNT {
        if in_flight.len() == IN_FLIGHT {
            let oldest: tramontane::Proposal<u64> = in_flight.pop_front().expect("it is full");
            oldest.wait(PATIENCE).expect("an answer");
        }
        in_flight.push_back(member.propose(COMMAND));
    }
    for proposal in in_flight {
        proposal.wait(PATIENCE).expect("an answer");
    }
}

fn timed(call: impl FnOnce()) -> Duration {
    let started = Instant::now();
    call();
    started.elapsed()
}

fn latency(mut call: impl FnMut()) -> Duration {
    let pings = (0..PINGS).map(|_| {
        std::thread::sleep(PAUSE);
        timed(&mut call)
    });
    median(pings.collect())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let members = std::env::args().nth(1).map_or(2, |text| text.parse().expect("a number"));
    let (raw, machines) = (all("untyped", members, untyped), all("typed", members, typed));
    let mut sender = raw[0].sender().expect("it sends");
    let machine = &machines[0];
    let (mut sends, mut proposals) = (Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let pair = (timed(|| send_all(&mut sender)), timed(|| propose_all(machine)));
        if round > 0 {
            sends.push(pair.0);
            proposals.push(pair.1);
        }
    }
    let (sent, proposed) = (median(sends), median(proposals));
    let rate = |time: Duration| f64::from(COUNT) / time.as_secs_f64();
    println!("{members} members, {} bytes", MESSAGE.len());
    println!("untyped: {:.0} per second; typed: {:.0} per second", rate(sent), rate(proposed));
    println!("ratio of medians: {:.2}", rate(proposed) / rate(sent));
    let untyped = latency(|| {
        let receipt = sender.send(&MESSAGE, PATIENCE).expect("it is sent");
        receipt.delivered().wait(PATIENCE).expect("it is delivered");
    });
    let typed = latency(|| {
        machine.propose(COMMAND).wait(PATIENCE).expect("an answer");
    });
    println!("one at a time, untyped: {untyped:?}; typed: {typed:?}");
}
