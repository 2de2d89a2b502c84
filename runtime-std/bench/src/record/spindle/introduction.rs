//! Abstract, introduction, background, and the techniques (I to III).

use super::super::case::{Figure, Machine, Sending, Variant, Who};
use super::super::claim::{Claim, Seen, Source, Stated, short};
use super::{each, mean, of, rate};

use Variant::{Baseline, Batching, Spindle};

const OTHERS: &str = "other hardware, which no experiment of the paper uses";
const ILLUSTRATION: &str = "an illustration, and no measurement";

pub(super) const CLAIMS: &[Claim] = &[
    Claim::number(
        "spindle-abstract-before",
        "abstract",
        "bandwidth utilization for 10KB messages rose from 1GB/s",
        1.0,
        "GB/s",
        |runs| mean(|nodes| rate(runs, Sending::new(Baseline, nodes))),
    )
    .note("the paper does not say of how many members: the average over sizes is taken"),
    Claim::number("spindle-abstract-after", "abstract", "to 9.7GB/s", 9.7, "GB/s", |runs| {
        rate(runs, Sending::new(Spindle, 16))
    })
    .note("at 16 members"),
    Claim::input(
        "spindle-network",
        "abstract, IV",
        "a 12.5GB/s network",
        12.5,
        "GB/s",
        Source::Parameter(Machine::Spindle, |profile| profile.port_bytes_per_us as f64 / 1e3),
    ),
    Claim::stated(
        "spindle-abstract-latency",
        "abstract",
        "latency dropped by nearly two orders of magnitude",
        Stated::Between(50.0, 100.0),
        "times",
        |runs| {
            let latency = |variant| of(runs, Sending::new(variant, 16), Figure::LatencyUs);
            Ok(latency(Baseline)? / latency(Spindle)?)
        },
    )
    .note(
        "at 16 senders; nearly two orders of magnitude is read as 50 to 100 times. With \
             everything on, senders fill their windows here, and a message waits for 1600 others",
    ),
    Claim::not_modelled(
        "spindle-cutting-edge-rate",
        "I",
        "throughput can be as high as 200 Gbps",
        Stated::Number(200.0),
        "Gbit/s",
        OTHERS,
    ),
    Claim::not_modelled(
        "spindle-cutting-edge-latency",
        "I",
        "one-way latency as low as 0.75 us",
        Stated::Number(0.75),
        "us",
        OTHERS,
    ),
    Claim::not_modelled(
        "spindle-lines-of-code",
        "I",
        "it requires just a few dozen lines of code",
        Stated::Direction,
        "",
        "of another program's source",
    ),
    Claim::not_modelled(
        "spindle-example-table",
        "II-B, Table I",
        "increases from 21 to 25",
        Stated::Direction,
        "",
        ILLUSTRATION,
    ),
    Claim::not_modelled(
        "spindle-typical-window",
        "II-C",
        "a w value in the range 50 to 1000 would be typical",
        Stated::Between(50.0, 1000.0),
        "slots",
        "a person's estimate",
    ),
    Claim::not_modelled(
        "spindle-quiesce",
        "II-D",
        "quiesce if it loops for a while (1 ms in current settings)",
        Stated::Number(1.0),
        "ms",
        "no run of the paper is ever without work for so long",
    ),
    Claim::input(
        "spindle-latency-byte",
        "III-A, Fig. 1",
        "1.73 us for 1-byte data",
        1.73,
        "us",
        Source::Parameter(Machine::Spindle, |profile| profile.latency_byte_ns as f64 / 1e3),
    ),
    Claim::input(
        "spindle-latency-page",
        "III-A, Fig. 1",
        "2.46 us for 4KB data",
        2.46,
        "us",
        Source::Parameter(Machine::Spindle, |profile| profile.latency_page_ns as f64 / 1e3),
    ),
    Claim::input(
        "spindle-post",
        "III-A",
        "posting an RDMA request to the NIC takes ~1 us",
        1.0,
        "us",
        Source::Parameter(Machine::Spindle, |profile| profile.post_ns as f64 / 1e3),
    )
    .note(
        "the paper's own totals (IV-A.1) say less: 64.84 s by 18.2 M puts to 15 peers is 237 ns a \
         post",
    ),
    Claim::stated(
        "spindle-posting-share",
        "III-A",
        "the predicate thread spends more than 30% of its time posting RDMA writes",
        Stated::AtLeast(30.0),
        "%",
        |runs| Ok(100.0 * of(runs, Sending::new(Baseline, 16), Figure::PostingShare)?),
    )
    .note(
        "at 16 senders; the paper does not say of how many. Its own totals there give 64.84 s of \
         about 330 s, which is 20 %",
    ),
    Claim::direction(
        "spindle-fixed-batches",
        "III-A",
        "performance collapsed and latency soared even for very small batch sizes",
        |runs| {
            let free = Sending::new(Batching, 16);
            let fixed = free.in_batches_of(8);
            let latency = |case| of(runs, case, Figure::LatencyUs);
            let (before, after) = (latency(free)?, latency(fixed)?);
            let (free, fixed) = (rate(runs, free)?, rate(runs, fixed)?);
            let words = format!(
                "{} GB/s with batches of 8, {} with free ones; {} us and {} us",
                short(fixed),
                short(free),
                short(after),
                short(before)
            );
            Ok(Seen { holds: fixed < free / 2.0 && after > 2.0 * before, words })
        },
    )
    .note(
        "batches of 8 at 16 senders; a collapse is read as less than half, soaring as twice. A \
             sender is never idle here, so that 8 messages are soon there",
    ),
    Claim::not_modelled(
        "spindle-reconfiguration",
        "III-B",
        "the delays for reconfiguration (a few milliseconds)",
        Stated::Direction,
        "",
        "views do not change in these runs",
    ),
    Claim::stated(
        "spindle-posting-in-predicates",
        "III-C",
        "can consume 20-50% of the time spent in the entire predicated test and code block",
        Stated::Between(20.0, 50.0),
        "%",
        |runs| Ok(100.0 * of(runs, Sending::new(Variant::Nulls, 16), Figure::PostingShare)?),
    )
    .note("with batching and nulls, before posts leave the lock; 16 senders"),
    Claim::number(
        "spindle-upcall-1us",
        "III-D",
        "upcalls take 1 us ... performance decreases by about 9% on average",
        9.0,
        "%",
        |runs| upcall_cost(runs, 1_000),
    ),
    Claim::number("spindle-upcall-100us", "III-D", "100 us ... 90%", 90.0, "%", |runs| {
        upcall_cost(runs, 100_000)
    }),
    Claim::number("spindle-upcall-1ms", "III-D", "1 ms ... 99%", 99.0, "%", |runs| {
        upcall_cost(runs, 1_000_000)
    }),
    Claim::number(
        "spindle-upcall-rate-100us",
        "III-D",
        "performance degenerates to one message delivered per delay time (100 us)",
        1.0,
        "messages",
        |runs| upcall_rate(runs, 100_000),
    ),
    Claim::number(
        "spindle-upcall-rate-1ms",
        "III-D",
        "performance degenerates to one message delivered per delay time (1 ms)",
        1.0,
        "messages",
        |runs| upcall_rate(runs, 1_000_000),
    ),
    Claim::input(
        "spindle-machines",
        "IV",
        "our local cluster consisting of 16 machines",
        16.0,
        "machines",
        Source::Configuration,
    ),
    Claim::input(
        "spindle-million",
        "IV-A.1",
        "Each sender sends a total of 1 million messages",
        1e6,
        "messages",
        Source::Configuration,
    )
    .note("runs here are shorter; what is counted for a million is counted by message"),
];

use super::super::runs::{Missing, Runs};

/// What a slow upcall costs, on average over sizes, in percent.
fn upcall_cost(runs: &Runs<'_>, upcall_ns: u64) -> Result<f64, Missing> {
    let left = each(&[2, 4, 8, 16], |nodes| {
        let usual = Sending::new(Baseline, nodes);
        Ok(rate(runs, Sending { upcall_ns, ..usual })? / rate(runs, usual)?)
    })?;
    let mean = left.iter().map(|(_, left)| left).sum::<f64>() / left.len() as f64;
    Ok(100.0 * (1.0 - mean))
}

/// Messages that are delivered in the time of an upcall.
fn upcall_rate(runs: &Runs<'_>, upcall_ns: u64) -> Result<f64, Missing> {
    let case = Sending { upcall_ns, ..Sending::new(Baseline, 16).by(Who::All) };
    Ok(of(runs, case, Figure::MessagesPerSecond)? * upcall_ns as f64 / 1e9)
}
