//! Histories of registers and counters while nodes are killed: they must be linearizable, and no
//! answered write may be lost.
//!
//! Values of registers are unique, so a history is judged by zones (Gibbons and Korach, "Testing
//! shared memories", 1997), and a counter's answers give its order directly.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::client::TestClient;
use crate::nodes::{TestGroup, TestNode, await_that};

/// The time of an operation whose outcome is unknown: it may take effect at any later time.
const NEVER: u64 = u64::MAX;

/// A write or a read of a register. The value 0 is the absence of one.
#[derive(Clone, Copy, Debug)]
struct RegisterStep {
    key: u64,
    is_write: bool,
    value: u64,
    called: u64,
    returned: u64,
}

/// An increment or a read of a counter.
#[derive(Clone, Copy, Debug)]
struct CounterStep {
    is_increment: bool,
    /// The counter's value afterwards, or `None` if it is unknown.
    value: Option<u64>,
    called: u64,
    returned: u64,
}

/// Returns the reason why a register's history is not linearizable.
fn judge_register(steps: &[RegisterStep]) -> Result<(), String> {
    // The first call of a read or write, the last one, the first return, and the write's call.
    let mut zones: BTreeMap<u64, (u64, u64, Option<u64>, usize)> = BTreeMap::new();
    // Nothing was there before the first call.
    zones.insert(0, (0, 0, Some(0), 0));
    for step in steps {
        let zone = zones.entry(step.value).or_insert((NEVER, 0, None, 0));
        zone.0 = zone.0.min(step.returned);
        zone.1 = zone.1.max(step.called);
        if step.is_write {
            if zone.2.replace(step.called).is_some() {
                return Err(format!("{step:?}: written twice, so the test is wrong"));
            }
        } else {
            zone.3 += 1;
        }
    }
    for step in steps.iter().filter(|step| !step.is_write) {
        match zones.get(&step.value).and_then(|zone| zone.2) {
            None => return Err(format!("{step:?}: nobody wrote it")),
            Some(called) if step.returned < called => {
                return Err(format!("{step:?}: written only at {called}"));
            }
            Some(_) => {}
        }
    }
    // A write that may not have taken effect, and that nobody read, restricts nothing.
    zones.retain(|_, zone| zone.0 != NEVER);
    let mut forward: Vec<(u64, u64, u64)> = Vec::new();
    let mut backward: Vec<(u64, u64, u64)> = Vec::new();
    for (value, (first_return, last_call, ..)) in zones {
        if first_return < last_call {
            forward.push((first_return, last_call, value));
        } else {
            backward.push((last_call, first_return, value));
        }
    }
    forward.sort_unstable();
    for pair in forward.windows(2) {
        if pair[1].0 < pair[0].1 {
            return Err(format!("values {} and {} took turns", pair[0].2, pair[1].2));
        }
    }
    for (start, end, value) in backward {
        // The zones do not overlap, so the last one that begins before is the only candidate.
        let at = forward.partition_point(|zone| zone.0 < start);
        if let Some(zone) = at.checked_sub(1).and_then(|at| forward.get(at))
            && end < zone.1
        {
            return Err(format!("value {value} was written and gone while {} was seen", zone.2));
        }
    }
    Ok(())
}

/// Returns the reason why a counter's history is not linearizable.
fn judge_counter(steps: &[CounterStep]) -> Result<(), String> {
    let unknown = steps.iter().filter(|step| step.is_increment && step.value.is_none()).count();
    let known: Vec<u64> =
        steps.iter().filter(|step| step.is_increment).filter_map(|step| step.value).collect();
    let mut distinct = known.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() != known.len() {
        return Err("two increments returned the same value".to_owned());
    }
    let most = (known.len() + unknown) as u64;
    if let Some(step) = steps.iter().find(|step| step.value.is_some_and(|value| value > most)) {
        return Err(format!("{step:?}: only {most} increments were called"));
    }
    // Increments and reads in the order of the values. A read follows the increment to its value.
    let mut ordered: Vec<_> = steps
        .iter()
        .filter_map(|step| Some((step.value?, !step.is_increment, step.called, step.returned)))
        .collect();
    ordered.sort_unstable();
    let mut least_return = NEVER;
    for (value, _, called, returned) in ordered.into_iter().rev() {
        // A later value returned before this one was called.
        if least_return < called {
            return Err(format!("value {value} was seen after a greater one"));
        }
        least_return = least_return.min(returned);
    }
    Ok(())
}

/// The clients of a run, and what they saw.
struct ClientRun {
    started: Instant,
    addresses: Mutex<Vec<Option<SocketAddr>>>,
    is_over: AtomicBool,
    next_value: AtomicU64,
    registers: Mutex<Vec<RegisterStep>>,
    counter: Mutex<Vec<CounterStep>>,
}

/// A small generator of random numbers.
struct KillDice(u64);

impl KillDice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

impl ClientRun {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).expect("a short run")
    }

    /// Asks one node after another until the run is over.
    fn ask_until_over(&self, seed: u64) {
        let mut random = KillDice(seed | 1);
        while !self.is_over.load(Ordering::Relaxed) {
            let addresses = self.addresses.lock().expect("no panic").clone();
            let at = usize::try_from(random.below(addresses.len() as u64)).expect("small");
            let client = addresses[at].and_then(|to| TestClient::try_connect(to).ok());
            let Some(mut client) = client else {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            };
            let mut continues = true;
            while continues && !self.is_over.load(Ordering::Relaxed) {
                continues = self.step(&mut client, &mut random);
            }
        }
    }

    /// Makes one step. Returns false if the connection cannot continue.
    fn step(&self, client: &mut TestClient, random: &mut KillDice) -> bool {
        // New keys all the time, so that each has a short history.
        let key = self.now() / 200_000_000 * 4 + random.below(4);
        let (name, kind) = (format!("key:{key}"), random.below(4));
        let value = self.next_value.fetch_add(1, Ordering::Relaxed);
        let text = value.to_string();
        let called = self.now();
        let reply = match kind {
            0 => client.try_ask(&[b"SET", name.as_bytes(), text.as_bytes()]),
            1 => client.try_ask(&[b"INCR", b"counter"]),
            2 => client.try_ask(&[b"GET", b"counter"]),
            _ => client.try_ask(&[b"GET", name.as_bytes()]),
        };
        // An error leaves the outcome open, unless it says that nothing was executed.
        let is_answered = reply.as_ref().is_some_and(|reply| !reply.starts_with("(error)"));
        if reply.as_ref().is_some_and(|reply| reply.starts_with("(error) NOTEXECUTED")) {
            return false;
        }
        let returned = if is_answered { self.now() } else { NEVER };
        let number = reply.map(|reply| reply.trim_matches('"').parse().unwrap_or(0));
        let seen = number.filter(|_| is_answered);
        match (kind, seen) {
            (0, _) => {
                let step = RegisterStep { key, is_write: true, value, called, returned };
                self.registers.lock().expect("no panic").push(step);
            }
            (1, value) => {
                let step = CounterStep { is_increment: true, value, called, returned };
                self.counter.lock().expect("no panic").push(step);
            }
            (2, Some(value)) => {
                let value = Some(value);
                let step = CounterStep { is_increment: false, value, called, returned };
                self.counter.lock().expect("no panic").push(step);
            }
            (3, Some(value)) => {
                let step = RegisterStep { key, is_write: false, value, called, returned };
                self.registers.lock().expect("no panic").push(step);
            }
            _ => {}
        }
        is_answered
    }

    fn judge(&self) -> Result<(usize, usize), String> {
        let mut registers: BTreeMap<u64, Vec<RegisterStep>> = BTreeMap::new();
        for step in self.registers.lock().expect("no panic").iter() {
            registers.entry(step.key).or_default().push(*step);
        }
        for (key, steps) in &registers {
            judge_register(steps).map_err(|why| format!("register {key}: {why}"))?;
        }
        let counter = self.counter.lock().expect("no panic");
        judge_counter(&counter).map_err(|why| format!("counter: {why}"))?;
        Ok((registers.values().map(Vec::len).sum(), counter.len()))
    }
}

/// Lets clients ask all nodes while nodes are killed, and judges what they saw.
fn run(fields: &str, seed: u64, kills: usize, kill: impl Fn(&mut KillDice) -> Vec<usize>) {
    let group = TestGroup::new(fields);
    let mut nodes: Vec<Option<TestNode>> =
        group.start_all(&[0, 1, 2]).into_iter().map(Some).collect();
    let addresses = nodes.iter().map(|node| node.as_ref().map(|node| node.address)).collect();
    let run = Arc::new(ClientRun {
        started: Instant::now(),
        addresses: Mutex::new(addresses),
        is_over: AtomicBool::new(false),
        next_value: AtomicU64::new(1),
        registers: Mutex::default(),
        counter: Mutex::default(),
    });
    let clients: Vec<_> = (1..=6)
        .map(|client| {
            let run = Arc::clone(&run);
            std::thread::spawn(move || run.ask_until_over(seed.wrapping_mul(977) + client))
        })
        .collect();
    let mut random = KillDice(seed | 1);
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(100 + random.below(200)));
        let killed = kill(&mut random);
        for at in &killed {
            run.addresses.lock().expect("no panic")[*at] = None;
            nodes[*at].take().expect("it runs").kill();
        }
        let ids: Vec<u32> = killed.iter().map(|at| u32::try_from(*at).expect("small")).collect();
        for (at, node) in killed.into_iter().zip(group.start_all(&ids)) {
            run.addresses.lock().expect("no panic")[at] = Some(node.address);
            nodes[at] = Some(node);
        }
        let first = nodes[0].as_ref().expect("it runs");
        await_that("all are members", || first.client().ask("INFO").contains("members:0 1 2"));
    }
    std::thread::sleep(Duration::from_millis(100));
    run.is_over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    let (registers, counter) = run.judge().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    println!("seed {seed}: {kills} kills, {registers} register steps, {counter} counter steps");
    assert!(registers > 20 && counter > 20, "too few steps to judge: {registers}, {counter}");
}

fn one(random: &mut KillDice) -> Vec<usize> {
    vec![usize::try_from(random.below(3)).expect("small")]
}

fn one_or_all(random: &mut KillDice) -> Vec<usize> {
    if random.below(3) == 0 { vec![0, 1, 2] } else { one(random) }
}

/// The number of kills in each part of the long tests.
const KILLS_EACH: usize = 25;

#[test]
fn histories_are_linearizable_while_nodes_are_killed() {
    run("", 1, 3, one);
}

#[test]
fn logged_histories_are_linearizable_while_all_are_killed() {
    run("logged = true", 2, 3, one_or_all);
}

#[test]
#[ignore = "takes several minutes"]
fn many_kills_lose_no_answered_write() {
    (10..22).for_each(|seed| run("", seed, KILLS_EACH, one));
}

#[test]
#[ignore = "takes several minutes"]
fn many_kills_of_all_lose_no_logged_write() {
    (30..42).for_each(|seed| run("logged = true", seed, KILLS_EACH, one_or_all));
}

#[test]
fn judge_rejects_planted_violations() {
    let step = |is_write, value, called, returned| RegisterStep {
        key: 0,
        is_write,
        value,
        called,
        returned,
    };
    let (write, read) = (|v, c, r| step(true, v, c, r), |v, c, r| step(false, v, c, r));
    for (what, steps) in [
        ("a stale read", vec![write(1, 1, 2), write(2, 3, 4), read(1, 5, 6)]),
        ("a lost write", vec![write(1, 1, 2), read(0, 3, 4)]),
        ("a read of nothing", vec![read(7, 1, 2)]),
        ("a read before its write", vec![read(7, 1, 2), write(7, 3, 4)]),
        (
            "values that take turns",
            vec![write(1, 1, 9), write(2, 1, 9), read(1, 10, 11), read(2, 12, 13), read(1, 14, 15)],
        ),
    ] {
        assert!(judge_register(&steps).is_err(), "{what}");
    }
    let good = vec![
        read(0, 1, 2),
        write(1, 1, 9),
        read(1, 3, 4),
        write(2, 5, NEVER),
        read(2, 20, 21),
        write(3, 5, NEVER),
    ];
    assert_eq!(judge_register(&good), Ok(()));
    let count = |is_increment, value, called, returned| CounterStep {
        is_increment,
        value,
        called,
        returned,
    };
    for (what, steps) in [
        ("a lost increment", vec![count(true, Some(1), 1, 2), count(true, Some(1), 3, 4)]),
        ("a stale read", vec![count(true, Some(1), 1, 2), count(false, Some(0), 3, 4)]),
        ("an increment twice", vec![count(true, Some(2), 1, 2)]),
    ] {
        assert!(judge_counter(&steps).is_err(), "{what}");
    }
    let good =
        [count(true, None, 1, NEVER), count(true, Some(2), 3, 4), count(false, Some(1), 1, 9)];
    assert_eq!(judge_counter(&good), Ok(()));
}
