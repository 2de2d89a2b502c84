//! Measures proposals against untyped messages of the same bytes, in turn, between members that are
//! threads of this process: `cargo run --release -p tramontane --example typed_speed [MEMBERS]`.
//!
//! Prints, for both, the median rate with many in flight, and the median latency at a low rate.
//! Commands are texts of 31 bytes and of 1 and 10 KB, whose bytes serde copies at once, and an
//! array of 32 bytes, which serde encodes and decodes byte by byte.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use tramontane::serde::de::DeserializeOwned;
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
/// Bytes that a group adds to a command: the format's version, and the time.
const HEAD_BYTES: usize = 9;

trait ExampleCommand: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    fn first(&self) -> u8;
}

impl ExampleCommand for [u8; 32] {
    fn first(&self) -> u8 {
        self[0]
    }
}

impl ExampleCommand for String {
    fn first(&self) -> u8 {
        self.as_bytes()[0]
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Sum<C>(u64, PhantomData<C>);

impl<C: ExampleCommand> StateMachine for Sum<C> {
    type Command = C;
    type Answer = u64;

    fn apply(&mut self, command: C) -> u64 {
        self.0 += u64::from(command.first());
        self.0
    }
}

/// Starts all members of a group at the same time.
fn all<R: Send>(
    name: &str,
    (members, bytes): (u32, usize),
    one: impl Fn(Description, u32) -> R + Sync,
) -> Vec<R> {
    let bytes = u32::try_from(bytes).expect("small");
    let name = format!("{name}-{bytes}-{}", std::process::id());
    let group = Description::local(&name, members, 100, bytes);
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

fn typed<C: ExampleCommand>(group: Description, node: u32) -> Replicated<Sum<C>> {
    Replicated::start(group, StartOptions::new(node), Sum(0, PhantomData)).expect("it starts")
}

fn send_all(sender: &mut Sender, message: &[u8]) {
    let mut receipt = None;
    for _ in 0..COUNT {
        receipt = Some(sender.send(message, PATIENCE).expect("it is sent"));
    }
    let last = receipt.expect("a message");
    last.delivered().wait(PATIENCE).expect("it is delivered");
}

fn propose_all<C: ExampleCommand>(member: &Replicated<Sum<C>>, command: &C) {
    let mut in_flight = VecDeque::with_capacity(IN_FLIGHT);
    for _ in 0..COUNT {
        if in_flight.len() == IN_FLIGHT {
            let oldest: tramontane::Proposal<u64> = in_flight.pop_front().expect("it is full");
            oldest.wait(PATIENCE).expect("an answer");
        }
        in_flight.push_back(member.propose(command.clone()));
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
    println!("{members} members");
    // A text is encoded behind its length.
    measure("text of 31 bytes", members, &"7".repeat(31), 1 + 31);
    measure("array of 32 bytes", members, &[7_u8; 32], 32);
    measure("text of 1,000 bytes", members, &"7".repeat(1_000), 2 + 1_000);
    measure("text of 10,000 bytes", members, &"7".repeat(10_000), 2 + 10_000);
}

/// Measures a command that is encoded in this many bytes.
fn measure<C: ExampleCommand>(kind: &str, members: u32, command: &C, encoded_bytes: usize) {
    let message = vec![7; HEAD_BYTES + encoded_bytes];
    let raw = all("untyped", (members, message.len()), untyped);
    let machines = all("typed", (members, message.len()), typed::<C>);
    let mut sender = raw[0].sender().expect("it sends");
    let machine = &machines[0];
    let (mut sends, mut proposals) = (Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let pair =
            (timed(|| send_all(&mut sender, &message)), timed(|| propose_all(machine, command)));
        if round > 0 {
            sends.push(pair.0);
            proposals.push(pair.1);
        }
    }
    let (sent, proposed) = (median(sends), median(proposals));
    let rate = |time: Duration| f64::from(COUNT) / time.as_secs_f64();
    println!(
        "{kind}: untyped {:.0} per second, typed {:.0}; ratio of medians {:.2}",
        rate(sent),
        rate(proposed),
        rate(proposed) / rate(sent)
    );
    let untyped = latency(|| {
        let receipt = sender.send(&message, PATIENCE).expect("it is sent");
        receipt.delivered().wait(PATIENCE).expect("it is delivered");
    });
    let typed = latency(|| {
        machine.propose(command.clone()).wait(PATIENCE).expect("an answer");
    });
    println!("  one at a time, untyped: {untyped:?}; typed: {typed:?}");
}
