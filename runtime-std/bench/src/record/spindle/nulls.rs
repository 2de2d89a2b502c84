//! IV-B: nulls.

use super::super::case::{Figure, Sending, Variant, Wait, Who};
use super::super::claim::{Claim, Seen, Stated, listed, short};
use super::super::runs::{Missing, Runs};
use super::{MILLION, SIZES, each, gain, of, rate};

use Variant::{Batching, Nulls};

const MICROSECOND: Wait = Wait::Ns(1_000);
const HUNDRED: Wait = Wait::Ns(100_000);

/// Sizes at which delays are compared.
const FEW: [u16; 4] = [4, 8, 12, 16];

/// The direction of one of the six cases.
macro_rules! delayed {
    ($id:literal, $words:literal, $wait:expr, $who:expr) => {
        Claim::direction($id, "IV-B.1, Fig. 10", $words, |runs| {
            Ok(Seen::all_above(&by_usual(runs, $wait, $who)?, 1.0))
        })
    };
}

pub(super) const CLAIMS: &[Claim] = &[
    delayed!("spindle-delay-1us-one", "performance increases (1 us, one)", MICROSECOND, Who::One)
        .note(
            "times the rate without delays, at 4, 8, 12 and 16 members; within 3 % of 1 at all of \
             them",
        ),
    delayed!("spindle-delay-1us-half", "increases (1 us, half)", MICROSECOND, Who::Half),
    delayed!("spindle-delay-100us-one", "increases (100 us, one)", HUNDRED, Who::One).note(
        "fewer senders fill a turn of the polling thread with fewer messages, and its posts and \
             looks cost the same",
    ),
    delayed!("spindle-delay-100us-half", "increases (100 us, half)", HUNDRED, Who::Half)
        .note("as with one that waits 100 us"),
    delayed!("spindle-delay-ever-one", "increases (lengthy, one)", Wait::ForEver, Who::One).note(
        "a lengthy delay is one that never ends: the paper speaks of indefinitely later; fails \
             as with 100 us",
    ),
    Claim::direction(
        "spindle-delay-ever-half",
        "IV-B.1, Fig. 10",
        "For every case other than where half senders are delayed indefinitely",
        |runs| {
            let shares = by_usual(runs, Wait::ForEver, Who::Half)?;
            let holds = !Seen::all_above(&shares, 1.0).holds;
            Ok(Seen { holds, words: listed(&shares) })
        },
    )
    .note("there it does not increase at every size"),
    Claim::number(
        "spindle-delay-peak",
        "IV-B.1",
        "performance increases, peaking at 10.0GB/s",
        10.0,
        "GB/s",
        |runs| {
            let mut peak: f64 = 0.0;
            for wait in [MICROSECOND, HUNDRED, Wait::ForEver] {
                for who in [Who::One, Who::Half] {
                    let rates = each(&FEW, |nodes| delayed(runs, nodes, wait, who))?;
                    peak = rates.iter().map(|(_, rate)| *rate).fold(peak, f64::max);
                }
            }
            Ok(peak)
        },
    )
    .note("with small batches the cost of a loop does not fall when senders wait"),
    Claim::number(
        "spindle-null-iterations-delayed",
        "IV-B.1",
        "the delayed sender sends one or more nulls in 517K iterations",
        517.0,
        "k",
        |runs| Ok(of(runs, one_waits(16), Figure::WaitingNulls)? * MILLION / 1e3),
    )
    .note("16 members with a million messages each, one of which waits 100 us"),
    Claim::number(
        "spindle-null-iterations-continuous",
        "IV-B.1",
        "a continuous sender sends them in only 189K iterations",
        189.0,
        "k",
        |runs| Ok(of(runs, one_waits(16), Figure::OtherNulls)? * MILLION / 1e3),
    )
    .note(
        "a sender that comes to the lock late has nulls sent for it, more often here than in \
             the paper",
    ),
    Claim::number(
        "spindle-between-2",
        "IV-B.1",
        "inter-delivery time ... decreases from 3.779 us for 2 nodes",
        3.779,
        "us",
        |runs| of(runs, one_waits(2), Figure::BetweenUs),
    )
    .note(
        "the sender that waits is the first of a round here, so the time between two deliveries \
             is what comes before its message",
    ),
    Claim::number("spindle-between-8", "IV-B.1", "to 1.617 us for 8 nodes", 1.617, "us", |runs| {
        of(runs, one_waits(8), Figure::BetweenUs)
    })
    .note("as with 2 nodes"),
    Claim::number(
        "spindle-between-16",
        "IV-B.1",
        "and 1.192 us for 16 nodes",
        1.192,
        "us",
        |runs| of(runs, one_waits(16), Figure::BetweenUs),
    )
    .note("as with 2 nodes"),
    Claim::number(
        "spindle-nulls-cost",
        "IV-B.2, Fig. 11",
        "The drop for smaller nodes is significant for all senders (up to 25%)",
        25.0,
        "%",
        |runs| {
            let gains = each(&SIZES, |nodes| gain(runs, Nulls, Batching, nodes, Who::All))?;
            let least = gains.iter().map(|(_, gain)| *gain).fold(f64::INFINITY, f64::min);
            Ok(100.0 * (1.0 - least))
        },
    )
    .note(
        "as one integer (III-B) they cost little; if each null costs a message's reception and \
             delivery, 25 to 30 %, but then at 16 members too",
    ),
    Claim::direction(
        "spindle-nulls-small",
        "IV-B.2",
        "For all senders, performance is initially worse",
        |runs| {
            let gains = each(&[2, 4], |nodes| gain(runs, Nulls, Batching, nodes, Who::All))?;
            Ok(Seen { holds: gains.iter().all(|(_, gain)| *gain < 1.0), words: listed(&gains) })
        },
    ),
    Claim::direction(
        "spindle-nulls-large",
        "IV-B.2",
        "With larger subgroup sizes ... null-sends accelerate message delivery",
        |runs| {
            let gains = each(&[14, 16], |nodes| gain(runs, Nulls, Batching, nodes, Who::All))?;
            Ok(Seen::all_above(&gains, 1.0))
        },
    )
    .note(
        "nulls free fast senders of slow ones, but these send no more: the polling thread is busy \
             all the time",
    ),
    Claim::direction(
        "spindle-nulls-half",
        "IV-B.2",
        "almost negligible for half senders",
        |runs| {
            let gains = each(&SIZES, |nodes| gain(runs, Nulls, Batching, nodes, Who::Half))?;
            Ok(Seen::all_above(&gains, 0.9))
        },
    )
    .note("the drop is at most a tenth at any size"),
    Claim::direction(
        "spindle-nulls-one",
        "IV-B.2",
        "the graph confirms that no overhead is introduced",
        |runs| {
            let gains = each(&SIZES, |nodes| gain(runs, Nulls, Batching, nodes, Who::One))?;
            Ok(Seen::all_above(&gains, 0.97))
        },
    )
    .note("one sender; at most 3 % less at any size"),
    Claim::direction(
        "spindle-nulls-one-sends",
        "IV-B.3",
        "allowing the active senders to run at full speed",
        |runs| {
            let (nodes, waits) = (8, Sending::new(Nulls, 8).waits(Wait::ForEver, Who::Half));
            let alone = rate(runs, Sending::new(Nulls, nodes).by(Who::Half))?;
            let gapped = rate(runs, waits)?;
            let words = format!("{} GB/s, {} without the others", short(gapped), short(alone));
            Ok(Seen { holds: gapped >= 0.9 * alone, words })
        },
    )
    .note(
        "half of 8 declared senders never send; the others beside a group of them alone. Each \
             null is looked at when its turn comes",
    ),
    Claim::not_modelled(
        "spindle-spin-lock",
        "III-B, IV-B.3",
        "the C++ 17 implementation of spin-locks turns out to be unfair on NUMA hardware",
        Stated::Direction,
        "",
        "a defect of another library on one machine",
    ),
];

fn delayed(runs: &Runs<'_>, nodes: u16, wait: Wait, who: Who) -> Result<f64, Missing> {
    rate(runs, Sending::new(Nulls, nodes).waits(wait, who))
}

/// With delays by without, for each size.
fn by_usual(runs: &Runs<'_>, wait: Wait, who: Who) -> Result<Vec<(f64, f64)>, Missing> {
    each(&FEW, |nodes| {
        Ok(delayed(runs, nodes, wait, who)? / rate(runs, Sending::new(Nulls, nodes))?)
    })
}

/// All send, and one waits 100 us after each message.
fn one_waits(nodes: u16) -> Sending {
    Sending::new(Nulls, nodes).waits(HUNDRED, Who::One)
}
