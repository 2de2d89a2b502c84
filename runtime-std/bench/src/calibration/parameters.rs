//! From components to the parameters of a profile.
//!
//! Each parameter is a formula of what was measured, or known of what the processes are. None is
//! chosen for a run that is predicted.

use tramontane_runtime::carrier::Carrier;

use super::components::steps::{Pass, Passed, idle_ns, passed};
use super::components::{copies, kernel, lines, streams};
use super::held_out::Fabric;
use super::state::{OneState, State};
use crate::error::BenchError;
use crate::machine::machine;
use crate::profiles::{Machine, Setting};
use crate::progress::Progress;
use crate::spread::{Spread, median};

/// What a calibrated profile takes the rest from: its parameters mean nothing on one machine.
pub(super) const BASE: &str = "usual";

/// The least factor within which a true value is taken to be: the clock, and rounding.
const UNCERTAINTY_MIN: f64 = 1.05;

/// Subgroups of which a step at rest is timed, beside the first.
const IDLE_SUBGROUPS: u32 = 19;

/// Bytes of a copy as a receiver of blocks makes it.
const BLOCK_COPY_BYTES: usize = 8 << 20;

/// Messages of a batch, for what each further message takes.
const BATCH: u32 = 100;

/// A parameter as one round gives it.
struct Value {
    name: &'static str,
    value: f64,
    /// How it follows from what was measured.
    source: &'static str,
}

/// Measures all components for several rounds of one state of the machine: the median of each
/// parameter, and how far rounds differ.
pub(super) fn calibrate(
    fabric: Fabric,
    rounds: usize,
    system: &str,
) -> Result<Machine, BenchError> {
    let progress = Progress::new(rounds as u64);
    progress.set_message("microbenchmarks");
    let measured = OneState::measure(rounds, State::probe, || {
        let values = values(fabric)?;
        progress.inc(1);
        Ok(values)
    })?;
    drop(progress);
    let state_ns = measured.state.line_ns().round();
    let about = format!(
        "{}, {system}: groups of one host over {}; {} rounds while a foreign line took about \
         {state_ns} ns, {} others set aside",
        machine(),
        fabric.carrier(),
        measured.kept.len(),
        measured.set_aside,
    );
    let mut calibrated = Machine::of_defaults(fabric.profile(), &about);
    calibrated.state_ns = Some(state_ns as u64);
    for (place, Value { name, source, .. }) in measured.kept[0].iter().enumerate() {
        let values: Vec<f64> = measured.kept.iter().map(|round| round[place].value).collect();
        let setting = setting(&values, source);
        calibrated.set(name, fabric.profile(), setting).map_err(BenchError::Setup)?;
    }
    Ok(calibrated)
}

/// A parameter from its value in each round.
fn setting(rounds: &[f64], source: &str) -> Setting {
    let Spread { min, max, .. } = Spread::of(rounds);
    let median = median(rounds);
    let factor = if min > 0.0 { f64::max(max / median, median / min) } else { f64::INFINITY };
    // A cost that comes out as nothing may be anything small.
    let factor = if factor.is_finite() { factor } else { 4.0 };
    Setting {
        value: median.max(0.0).round() as u64,
        source: source.into(),
        uncertainty: Some((factor.max(UNCERTAINTY_MIN) * 100.0).round() / 100.0),
    }
}

fn values(fabric: Fabric) -> Result<Vec<Value>, BenchError> {
    let mut values = processors()?;
    values.extend(memory()?);
    let carrier = fabric.carrier();
    let rest = Rest::measure(carrier)?;
    values.extend(rest.values());
    values.extend(match fabric {
        Fabric::Shm => shared_memory(&rest)?,
        Fabric::Tcp => connections(&rest)?,
    });
    Ok(values)
}

fn value(name: &'static str, value: f64, source: &'static str) -> Value {
    Value { name, value, source }
}

/// What the operating system's scheduler costs.
fn processors() -> Result<Vec<Value>, BenchError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(vec![
        value("host_processors", processors as f64, "the operating system"),
        value("host_members", 1_000.0, "all members are on this host"),
        value("switch_ns", kernel::switch_ns()?, "two threads of a processor give way in turn"),
        value("wake_ns", kernel::wake_ns()?, "half a round trip of two threads that park"),
    ])
}

/// What bytes cost that applications write and read.
fn memory() -> Result<Vec<Value>, BenchError> {
    let large = lines::touched(10_240)?;
    let bytes = large.bytes as f64;
    let lines = bytes / 64.0;
    let (small_copy, near_copy, far_copy) =
        (copies::copy_ns(64)?, copies::copy_ns(16 << 10)?, copies::copy_ns(1 << 20)?);
    let near_byte_ps = 1_000.0 * (near_copy - small_copy) / (16_320.0);
    Ok(vec![
        value(
            "foreign_line_ns",
            lines::foreign_line_ns()?,
            "a chain of lines that another processor wrote",
        ),
        value(
            "foreign_further_line_ns",
            (large.read_foreign_ns - large.read_again_ns) / lines,
            "messages of 10 KB read for the first time, less read again, a line",
        ),
        value(
            "build_byte_ps",
            1_000.0 * large.write_ns / bytes,
            "messages of 10 KB written that another processor has read, a byte",
        ),
        value(
            "delivered_byte_ps",
            1_000.0 * large.read_again_ns / bytes,
            "messages of 10 KB read again, a byte",
        ),
        value("copy_ns", small_copy, "a copy of 64 bytes"),
        value("copy_byte_ps", near_byte_ps, "a copy of 16 KiB less one of 64 bytes, a byte"),
        value("copy_near_bytes", 16_384.0, "the largest that a level 1 cache holds twice"),
        value(
            "copy_far_byte_ps",
            1_000.0 * far_copy / f64::from(1 << 20),
            "a copy of 1 MiB, a byte",
        ),
        value(
            "memory_bytes_per_us",
            copies::memory_bytes_per_us()?,
            "two processors copy twice what their own caches hold; bytes read and written",
        ),
    ])
}

/// What a step costs whatever it finds.
struct Rest {
    step_ns: f64,
    subgroup_ns: f64,
    look_ns: f64,
    /// Of a member of two.
    idle_ns: f64,
}

impl Rest {
    /// From steps of one thread, of two and four members, with and without idle subgroups. A
    /// subgroup costs its own look, and one for each of its senders and members.
    fn measure(carrier: Carrier) -> Result<Self, BenchError> {
        let (few, many) = (idle_ns(carrier, 2, 0)?, idle_ns(carrier, 4, 0)?);
        let each = f64::from(IDLE_SUBGROUPS);
        let of_two = (idle_ns(carrier, 2, IDLE_SUBGROUPS)? - few) / each;
        let of_four = (idle_ns(carrier, 4, IDLE_SUBGROUPS)? - many) / each;
        Ok(Self::solve(few, of_two, of_four))
    }

    /// A step at rest of two members with one sender, and what a subgroup of two and of four
    /// members adds in which all may send.
    fn solve(idle_ns: f64, of_two: f64, of_four: f64) -> Self {
        let look_ns = (of_four - of_two) / 4.0;
        let subgroup_ns = of_two - 4.0 * look_ns;
        Self { step_ns: idle_ns - subgroup_ns - 3.0 * look_ns, subgroup_ns, look_ns, idle_ns }
    }

    fn values(&self) -> Vec<Value> {
        const SOURCE: &str = "idle steps of 2 and 4 members, with 0 and 19 idle subgroups";
        vec![
            value("step_ns", self.step_ns, SOURCE),
            value("subgroup_ns", self.subgroup_ns, SOURCE),
            value("look_ns", self.look_ns, SOURCE),
        ]
    }
}

/// What each further message of a batch takes in each stage.
fn stages(one: &Passed, many: &Passed) -> Vec<Value> {
    const SOURCE: &str = "a batch of 100 messages of 8 bytes less one, each further one";
    let each = |stage: fn(&Passed) -> f64| (stage(many) - stage(one)) / f64::from(BATCH - 1);
    let delivered_ns = each(|passed| passed.deliver_ns);
    vec![
        value("build_ns", each(|passed| passed.build_ns), SOURCE),
        value("sent_ns", each(|passed| passed.send_ns), SOURCE),
        value("received_ns", each(|passed| passed.receive_ns) - delivered_ns, SOURCE),
        value("delivered_ns", delivered_ns, SOURCE),
    ]
}

/// What a message takes longer in each stage if its slot is whole lines. Nobody touches its bytes.
fn slot_lines(small: &Passed, large: &Passed) -> [Value; 3] {
    const SOURCE: &str = "a batch of 100 messages of 128 bytes less one of 8 bytes, each";
    let each = |stage: fn(&Passed) -> f64| (stage(large) - stage(small)) / f64::from(BATCH);
    let delivered_ns = each(|passed| passed.deliver_ns);
    [
        value("build_line_ns", each(|passed| passed.build_ns), SOURCE),
        value("received_line_ns", each(|passed| passed.receive_ns) - delivered_ns, SOURCE),
        value("delivered_line_ns", delivered_ns, SOURCE),
    ]
}

fn pass(carrier: Carrier, posts: u32, messages: u32, bytes: u32) -> Result<Passed, BenchError> {
    passed(Pass { carrier, members: 2, posts, messages, bytes })
}

/// Shared memory: a write is there at once, and what it costs is with who reads it.
fn shared_memory(rest: &Rest) -> Result<Vec<Value>, BenchError> {
    let carrier = Carrier::SharedMemory;
    let (one, many) = (pass(carrier, 1, 1, 8)?, pass(carrier, 1, BATCH, 8)?);
    let mut values = stages(&one, &many);
    values.extend(slot_lines(&many, &pass(carrier, 1, BATCH, 128)?));
    let (post_ns, far) = (one.send_ns - rest.idle_ns, copies::far_copies()?);
    values.extend([
        value("post_ns", post_ns, "a step that sends one message, less an idle one"),
        value("post_linked_ns", 0.0, "part of the first"),
        value(
            "upcall_ns",
            one.deliver_ns - rest.idle_ns - post_ns,
            "a step that delivers one message, less one that sends one",
        ),
    ]);
    values.extend([
        value("shared_rows", 1.0, "members map one memory"),
        value(
            "block_near_bytes",
            copies::FAR_BYTES as f64,
            "the fabric stores past the caches into what is larger",
        ),
        value(
            "block_far_byte_ps",
            1_000.0 * far.alone_ns,
            "the fabric's copy of 16 MiB past the caches, a byte",
        ),
        value(
            "block_far_shared_byte_ps",
            1_000.0 * far.shared_ns,
            "the same by two processors at once, the later of both, a byte",
        ),
        value(
            "block_byte_ps",
            1_000.0 * copies::copy_ns(BLOCK_COPY_BYTES)? / BLOCK_COPY_BYTES as f64,
            "a copy of 8 MiB, which no processor's own cache holds, a byte",
        ),
        value(
            "foreign_slots_at_once",
            f64::from(BATCH),
            "a batch whose slots are whole lines takes the stages hardly longer",
        ),
    ]);
    values.extend(no_wire("what a step stores is there at its end"));
    Ok(values)
}

/// TCP over the loopback: all that it costs is processor time, of the sender's and the receiver's
/// system calls.
fn connections(rest: &Rest) -> Result<Vec<Value>, BenchError> {
    let carrier = Carrier::Tcp;
    let alone = pass(Carrier::SharedMemory, 1, 1, 8)?;
    let batch = pass(Carrier::SharedMemory, 1, BATCH, 8)?;
    let mut values = stages(&alone, &batch);
    values.extend(slot_lines(&batch, &pass(Carrier::SharedMemory, 1, BATCH, 128)?));
    let (one, ten) = (pass(carrier, 1, 1, 8)?, pass(carrier, 10, 1, 8)?);
    let (few, many) = (pass(carrier, 1, 2, 10_240)?, pass(carrier, 1, 10, 10_240)?);
    let byte_ps =
        |stage: fn(&Passed) -> f64| 1_000.0 * (stage(&many) - stage(&few)) / f64::from(8 * 10_240);
    let post_ns = one.send_ns - rest.idle_ns;
    // A list is a message's slot and its counter.
    let arrival_ns = (ten.receive_ns - one.receive_ns) / 9.0 / 2.0;
    values.extend([
        value("post_ns", post_ns, "a step that sends one message of 8 bytes, less an idle one"),
        value("post_linked_ns", 0.0, "one system call for a list"),
        value(
            "post_byte_ps",
            byte_ps(|passed| passed.send_ns),
            "10 messages of 10 KB less 2, a byte",
        ),
        value(
            "arrival_ns",
            arrival_ns,
            "a step that takes 10 lists less one that takes 1, a write",
        ),
        value(
            "arrival_byte_ps",
            byte_ps(|passed| passed.receive_ns),
            "10 messages of 10 KB less 2, a byte",
        ),
        value(
            "arrival_first_ns",
            one.deliver_ns - rest.idle_ns - post_ns - 2.0 * arrival_ns,
            "a step that takes one word and sends one, less an idle one and the posts",
        ),
    ]);
    let block = streams::streamed()?;
    const PIECES: &str = "pieces of 128 KiB through a connection, from and to 16 MiB, a byte";
    values.extend([
        value("block_post_byte_ps", 1_000.0 * block.send_ns, PIECES),
        value("block_byte_ps", 1_000.0 * block.receive_ns, PIECES),
    ]);
    let source = "the kernel's copy has brought all bytes to the receiver's cache";
    values.push(value("foreign_further_line_ns", 0.0, source));
    values.push(value("foreign_line_ns", 0.0, source));
    let large = lines::touched(10_240)?;
    values.push(value(
        "build_byte_ps",
        1_000.0 * large.write_again_ns / large.bytes as f64,
        "messages of 10 KB written again, a byte",
    ));
    values.extend(no_wire("the sender's system call brings it to the receiver's socket"));
    Ok(values)
}

/// Between processes of one host there is no card and no wire: all time is the processors'.
fn no_wire(source: &'static str) -> [Value; 8] {
    [
        value("live_rows", 0.0, source),
        value("inline_bytes_max", 1e9, source),
        value("early_reads_percent", 100.0, source),
        value("completion_ns", 0.0, source),
        value("latency_byte_ns", 0.0, source),
        value("latency_page_ns", 0.0, source),
        value("ack_ns", 0.0, source),
        value("port_bytes_per_us", 1e6, source),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_at_rest_is_taken_apart() {
        // 10 ns a step, 20 a subgroup, 3 a look.
        let of = |members: f64, senders: f64| 20.0 + 3.0 * (members + senders);
        let rest = Rest::solve(10.0 + of(2.0, 1.0), of(2.0, 2.0), of(4.0, 4.0));
        assert_eq!((rest.step_ns, rest.subgroup_ns, rest.look_ns), (10.0, 20.0, 3.0));
    }

    #[test]
    fn each_further_message_is_what_a_batch_takes_longer() {
        let passed = |count: f64| Passed {
            build_ns: 100.0 + 2.0 * count,
            send_ns: 200.0 + 3.0 * count,
            receive_ns: 300.0 + 12.0 * count,
            deliver_ns: 400.0 + 8.0 * count,
        };
        let values = stages(&passed(1.0), &passed(100.0));
        let values: Vec<(&str, f64)> =
            values.iter().map(|value| (value.name, value.value)).collect();
        let expected =
            [("build_ns", 2.0), ("sent_ns", 3.0), ("received_ns", 4.0), ("delivered_ns", 8.0)];
        assert_eq!(values, expected);
    }

    #[test]
    fn a_parameter_is_the_median_and_its_uncertainty_the_spread() {
        let of = setting(&[100.0, 80.0, 150.0], "a clock");
        assert_eq!((of.value, of.uncertainty, of.source.as_str()), (100, Some(1.5), "a clock"));
        assert_eq!(setting(&[100.4, 100.0, 101.0], "").uncertainty, Some(1.05));
        let none = setting(&[-0.5, 0.2, 0.4], "");
        assert_eq!((none.value, none.uncertainty), (0, Some(4.0)));
    }
}
