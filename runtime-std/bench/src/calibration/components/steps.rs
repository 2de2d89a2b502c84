//! A member's step: at rest, and each stage's share of a message.
//!
//! One thread steps all members of a group in turn. So no cache line travels between processors,
//! nobody waits for anybody, and what a step takes is its own work.

use std::sync::Mutex;
use std::time::Instant;

use tramontane_core::ids::SubgroupId;
use tramontane_local::group::LocalGroup;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Description, Messages, Replica, Sender, Stepped, SubgroupDescription, start_stepped,
};
use tramontane_runtime::rdma::DeviceOptions;

use super::pinned::Work;
use super::{pinned, time_ns};
use crate::error::BenchError;
use crate::experiment::JOIN_LIMIT;
use crate::spread::median;

/// Steps at rest that are timed together.
const IDLE_STEPS: u32 = 20_000;

/// Times that a message, or a batch of them, goes through all stages.
const PASSES: usize = 300;

/// Slots of a sender.
const WINDOW: u32 = 100;

/// Steps of each member until nothing is under way.
const SETTLING_STEPS: usize = 200;

/// A group of which the first member sends in its first subgroup, and nobody in the idle ones.
pub(in super::super) fn description(
    members: u32,
    idle_subgroups: u32,
    bytes: u32,
) -> Result<Description, BenchError> {
    let mut builder = Description::builder("calibration").nodes(members).fixed();
    for index in 0..=idle_subgroups {
        let senders = if index == 0 { vec![0] } else { (0..members).collect() };
        builder = builder.subgroup(SubgroupDescription {
            window: WINDOW,
            message_max: bytes,
            senders: Some(senders),
            ..SubgroupDescription::named(&format!("part-{index}"))
        });
    }
    Ok(builder.build()?)
}

/// Leaves each message as it is.
struct Count(u64);

impl Replica for Count {
    #[inline]
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self.0 += messages.count() as u64;
    }
}

/// All members of a group, for one thread.
struct Alone {
    members: Vec<Stepped<Count>>,
    sender: Sender,
}

impl Alone {
    fn start(carrier: Carrier, group: &Description) -> Result<Self, BenchError> {
        let meeting =
            LocalGroup::new(carrier, group.nodes.len(), "calibration", &DeviceOptions::default())?;
        let meeting = &meeting;
        let start = |(index, rank): (usize, u32)| -> Result<_, BenchError> {
            let place = meeting.own_place(index)?;
            let (description, mut options) = place.start(group.clone(), rank)?;
            options.time_limit = JOIN_LIMIT;
            Ok(start_stepped(description, options, Count(0))?)
        };
        let members = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..group.nodes.len())
                .zip(0..)
                .map(|place| scope.spawn(move || start(place)))
                .collect();
            let failed = || BenchError::Setup("a member's thread panicked".into());
            starting
                .into_iter()
                .map(|thread| thread.join().map_err(|_| failed())?)
                .collect::<Result<Vec<_>, _>>()
        })?;
        let sender = members.first().and_then(|member| member.sender(SubgroupId(0)));
        let sender = sender.ok_or_else(|| BenchError::Setup("the first does not send".into()))?;
        Ok(Self { members, sender })
    }

    fn settle(&mut self) -> Result<(), BenchError> {
        for _ in 0..SETTLING_STEPS {
            let mut is_idle = true;
            for member in &mut self.members {
                is_idle &= member.step()?.is_idle();
            }
            if is_idle && self.members[0].is_settled() {
                return Ok(());
            }
        }
        Err(BenchError::Setup("a group in one thread does not come to rest".into()))
    }

    /// One step of a member: how many messages it delivered.
    fn step(&mut self, member: usize) -> Result<u64, BenchError> {
        Ok(self.members[member].step()?.progress.delivered)
    }

    /// Steps all behind the first two.
    fn step_others(&mut self, members: u32) -> Result<u64, BenchError> {
        (2..members as usize).map(|member| self.step(member)).sum()
    }

    /// Builds and sends: how long either took, without reading the clock.
    fn send(&mut self, pass: Pass, empty_ns: f64) -> Result<(f64, f64), BenchError> {
        let (mut build_ns, mut send_ns) = (0.0, 0.0);
        for _ in 0..pass.posts {
            let (took_ns, built) = time_ns(|| self.build(pass.messages, pass.bytes as usize));
            built?;
            build_ns += took_ns - empty_ns;
            let (took_ns, stepped) = time_ns(|| self.step(0));
            stepped?;
            send_ns += took_ns - empty_ns;
        }
        Ok((build_ns, send_ns))
    }

    /// Builds so many messages of so many bytes, which are left as they are.
    fn build(&mut self, count: u32, bytes: usize) -> Result<(), BenchError> {
        let full = |_| BenchError::Setup("a settled group has no free slot".into());
        let mut run = self.sender.try_reserve_run(count).map_err(full)?;
        while let Some(slot) = run.next(bytes).map_err(full)? {
            slot.commit();
        }
        Ok(())
    }
}

/// How long a step takes that finds nothing, of a member of a group of so many with so many idle
/// subgroups beside the first, in ns.
pub(in super::super) fn idle_ns(
    carrier: Carrier,
    members: u32,
    idle_subgroups: u32,
) -> Result<f64, BenchError> {
    pinned::on(0, || {
        let mut alone = Alone::start(carrier, &description(members, idle_subgroups, 64)?)?;
        alone.settle()?;
        let (took_ns, stepped) =
            time_ns(|| (0..IDLE_STEPS).try_for_each(|_| alone.members[0].step().map(|_| ())));
        stepped?;
        Ok(took_ns / f64::from(IDLE_STEPS))
    })
}

/// The way of a batch of messages through a group, in ns: medians of many passes.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Passed {
    /// To reserve the slots and mark them ready, all together; the bytes are left as they are.
    pub(in super::super) build_ns: f64,
    /// The sender's steps that send them.
    pub(in super::super) send_ns: f64,
    /// The step of one receiver, on another processor, that takes and delivers them.
    pub(in super::super) receive_ns: f64,
    /// The sender's step that learns of it and delivers them, too.
    pub(in super::super) deliver_ns: f64,
}

/// What goes through a group of so many members.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pass {
    pub(in super::super) carrier: Carrier,
    pub(in super::super) members: u32,
    /// Steps of the sender, each of which sends as many messages, before a receiver looks.
    pub(in super::super) posts: u32,
    pub(in super::super) messages: u32,
    pub(in super::super) bytes: u32,
}

/// Sends batches of messages, one after the other. The sender is stepped on one processor, the
/// others on another, and never at the same time.
pub(in super::super) fn passed(pass: Pass) -> Result<Passed, BenchError> {
    let group = description(pass.members, 0, pass.bytes)?;
    let baton = &Baton::new(Alone::start(pass.carrier, &group)?);
    // What reading the clock takes is in each figure.
    let empty: Vec<f64> = (0..PASSES).map(|_| time_ns(|| ()).0).collect();
    let empty_ns = median(&empty);
    let sender = move || {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..PASSES {
            let (build_ns, send_ns) = baton.with(0, |alone| alone.send(pass, empty_ns))??;
            let (deliver_ns, delivered) = baton.with(0, |alone| time_ns(|| alone.step(0)))?;
            if delivered? != u64::from(pass.posts * pass.messages) {
                // Over a network a batch comes back in parts now and then: that pass says nothing
                // of a whole batch.
                baton.with(0, Alone::settle)??;
                continue;
            }
            baton.with(0, |alone| alone.step(0))??;
            for (times, time) in times.iter_mut().zip([build_ns, send_ns, deliver_ns - empty_ns]) {
                times.push(time);
            }
        }
        if times[0].len() < PASSES / 2 {
            return Err(BenchError::Setup(format!(
                "{} of {PASSES} batches came back in parts: the machine is too busy to measure",
                PASSES - times[0].len()
            )));
        }
        Ok(times)
    };
    let receivers = move || {
        let mut times = Vec::new();
        for _ in 0..PASSES {
            let (receive_ns, received) = baton.with(1, |alone| {
                let first = time_ns(|| alone.step(1));
                // The others are no part of the figure, but the sender waits for them.
                (first.0, first.1.and(alone.step_others(pass.members)))
            })?;
            received?;
            times.push(receive_ns - empty_ns);
            for _ in 0..2 {
                baton.with(1, |alone| {
                    alone.step(1).and_then(|_| alone.step_others(pass.members))
                })??;
            }
        }
        Ok([times, Vec::new(), Vec::new()])
    };
    let calls: [Work<'_, [Vec<f64>; 3]>; 2] = [Box::new(sender), Box::new(receivers)];
    let [[build, send, deliver], [receive, ..]] = pinned::together([0, 1], calls)?;
    Ok(Passed {
        build_ns: median(&build),
        send_ns: median(&send),
        receive_ns: median(&receive),
        deliver_ns: median(&deliver),
    })
}

/// Something that two threads have in turn. They look for their turn all the time, so that neither
/// has to be woken.
struct Baton<T>(Mutex<(usize, T)>);

impl<T> Baton<T> {
    fn new(value: T) -> Self {
        Self(Mutex::new((0, value)))
    }

    /// Waits for the turn, takes it, and passes it on.
    fn with<R>(&self, own: usize, call: impl FnOnce(&mut T) -> R) -> Result<R, BenchError> {
        let begun = Instant::now();
        loop {
            if let Ok(mut held) = self.0.try_lock()
                && held.0 == own
            {
                let result = call(&mut held.1);
                held.0 = 1 - own;
                return Ok(result);
            }
            if begun.elapsed() > JOIN_LIMIT {
                return Err(BenchError::Setup("a microbenchmark's other thread ended".into()));
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_batch_takes_longer_where_each_message_counts() {
        let pass = |messages| Pass {
            carrier: Carrier::SharedMemory,
            members: 2,
            posts: 1,
            messages,
            bytes: 64,
        };
        let (one, many) = (passed(pass(1)).expect("it runs"), passed(pass(90)).expect("it runs"));
        assert!(many.build_ns > one.build_ns, "{one:?} {many:?}");
        // A send is one post in both, and takes the same time but for noise.
        assert!(many.receive_ns > one.receive_ns, "{one:?} {many:?}");
        assert!(many.deliver_ns > one.deliver_ns, "{one:?} {many:?}");
    }

    #[test]
    fn a_baton_is_had_in_turn() {
        let baton = &Baton::new(Vec::new());
        let call = |own: usize| {
            move || (0..3).try_for_each(|_| baton.with(own, |all: &mut Vec<usize>| all.push(own)))
        };
        pinned::together([0, 1], [call(0), call(1)]).expect("they run");
        assert_eq!(baton.with(0, |all| all.clone()).expect("it is its turn"), [0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn more_subgroups_take_a_step_longer() {
        let few = idle_ns(Carrier::SharedMemory, 2, 0).expect("it runs");
        let many = idle_ns(Carrier::SharedMemory, 2, 20).expect("it runs");
        assert!(many > few, "{few} {many}");
    }
}
