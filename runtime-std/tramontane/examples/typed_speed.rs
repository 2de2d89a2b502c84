//! Measures proposals against untyped messages of the same bytes, in turn, between members that are
//! threads of this process:
//! `cargo run --release -p tramontane --example typed_speed [MEMBERS [IN_FLIGHT]]`.
//!
//! Prints the median rate with many proposals in flight (1,000, ten windows), and the median
//! latency at a low rate. Untyped messages are sent in two ways: as bytes of which receivers read
//! the first, and as commands that the program encodes, and decodes at each member. The latter is
//! what a program without this layer would do, except that nobody there waits for answers.
//!
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

/// A member of a program that encodes and decodes its commands itself.
fn by_hand<C: ExampleCommand>(group: Description, node: u32) -> Running {
    let mut sum = 0_u64;
    let mut copied = Vec::new();
    let application = move |messages: &mut Messages<'_, '_>| {
        for message in messages {
            copied.clear();
            copied.extend_from_slice(message.payload);
            let command: C = postcard::from_bytes(&copied[HEAD_BYTES..]).expect("a command");
            sum += u64::from(command.first());
        }
        std::hint::black_box(sum);
    };
    start(group, StartOptions::new(node), application).expect("it starts")
}

fn send_by_hand<C: ExampleCommand>(sender: &mut Sender, command: &C) {
    let mut receipt = None;
    let mut bytes = Vec::new();
    for _ in 0..COUNT {
        bytes.clear();
        bytes.resize(HEAD_BYTES, 0);
        bytes = postcard::to_extend(&command.clone(), bytes).expect("it is encoded");
        receipt = Some(sender.send(&bytes, PATIENCE).expect("it is sent"));
    }
    let last = receipt.expect("a message");
    last.delivered().wait(PATIENCE).expect("it is delivered");
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

/// Proposes all commands, of which at most this number have no answer yet.
fn propose_all<C: ExampleCommand>(member: &Replicated<Sum<C>>, command: &C, most: usize) {
    let mut in_flight = VecDeque::with_capacity(most);
    for _ in 0..COUNT {
        if in_flight.len() == most {
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
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let members = arguments.next().map_or(2, |number| u32::try_from(number).expect("small"));
    let in_flight = arguments.next().unwrap_or(IN_FLIGHT);
    println!("{members} members, {in_flight} proposals in flight; messages per second");
    // The length of a text precedes it.
    measure("text of 31 bytes", members, in_flight, &"7".repeat(31), 1 + 31);
    measure("array of 32 bytes", members, in_flight, &[7_u8; 32], 32);
    measure("text of 1,000 bytes", members, in_flight, &"7".repeat(1_000), 2 + 1_000);
    measure("text of 10,000 bytes", members, in_flight, &"7".repeat(10_000), 2 + 10_000);
}

/// Measures a command that is encoded in this many bytes.
fn measure<C: ExampleCommand>(
    kind: &str,
    members: u32,
    in_flight: usize,
    command: &C,
    encoded_bytes: usize,
) {
    let message = vec![7; HEAD_BYTES + encoded_bytes];
    let raw = all("untyped", (members, message.len()), untyped);
    let machines = all("typed", (members, message.len()), typed::<C>);
    let by_hand = all("by-hand", (members, message.len()), by_hand::<C>);
    let mut sender = raw[0].sender().expect("it sends");
    let mut by_hand = by_hand[0].sender().expect("it sends");
    let machine = &machines[0];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    // The first round warms up.
    for round in 0..=ROUNDS {
        let of_round = [
            timed(|| send_all(&mut sender, &message)),
            timed(|| send_by_hand(&mut by_hand, command)),
            timed(|| propose_all(machine, command, in_flight)),
        ];
        if round > 0 {
            times.iter_mut().zip(of_round).for_each(|(times, time)| times.push(time));
        }
    }
    let rates = times.map(|times| f64::from(COUNT) / median(times).as_secs_f64());
    let [sent, encoded, proposed] = rates;
    println!(
        "{kind}: bytes {sent:.0}, by hand {encoded:.0}, typed {proposed:.0}: {:.2} of bytes, {:.2} \
         of by hand",
        proposed / sent,
        proposed / encoded
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
