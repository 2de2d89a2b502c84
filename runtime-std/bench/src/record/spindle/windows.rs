//! IV-A.2 and IV-A.3: windows, batch sizes, subgroups of which one is active.

use super::super::case::{Figure, Sending, Variant};
use super::super::claim::{Claim, Seen, Source, Stated, short};
use super::super::runs::{Missing, Runs};
use super::{SIZES, each, mean, of, rate};

use Variant::{Baseline, Batching};

/// The windows that Fig. 6 names, and those between.
const WINDOWS: [u32; 6] = [5, 20, 50, 100, 500, 1000];

/// The sizes at which runs of many subgroups are compared.
const FEW: [u16; 4] = [2, 4, 8, 16];

/// A batch's mean size at 16 senders in so many subgroups.
macro_rules! batch {
    ($id:literal, $words:literal, $value:literal, $subgroups:literal, $figure:ident) => {
        Claim::number($id, "IV-A.3, Fig. 7", $words, $value, "messages", |runs| {
            of(runs, Sending::new(Batching, 16).idle($subgroups), Figure::$figure)
        })
    };
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim::number(
        "spindle-window-5",
        "IV-A.2, Fig. 6",
        "a small window size of 5 increases performance by 4.5X average",
        4.5,
        "times",
        |runs| {
            mean(|nodes| {
                let small = Sending { window: 5, ..Sending::new(Batching, nodes) };
                Ok(rate(runs, small)? / rate(runs, Sending::new(Baseline, nodes))?)
            })
        },
    )
    .note(
        "five slots are enough for the two messages of a turn, which the lock allows at any \
             window",
    ),
    Claim::number(
        "spindle-window-best",
        "IV-A.2",
        "The highest performance is obtained for a window size of 100",
        100.0,
        "slots",
        |runs| {
            let most: Result<Vec<(u32, f64)>, Missing> = WINDOWS
                .into_iter()
                .map(|window| {
                    let of = |nodes| Sending { window, ..Sending::new(Batching, nodes) };
                    let rates = each(&FEW, |nodes| rate(runs, of(nodes)))?;
                    Ok((window, rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)))
                })
                .collect();
            let most = most?;
            let best = most.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            // The first of those that are as good.
            let first = most.iter().find(|(_, rate)| *rate >= 0.99 * best);
            Ok(first.map_or(0.0, |(window, _)| f64::from(*window)))
        },
    )
    .note(
        "among 5, 20, 50, 100, 500 and 1000, the least whose highest rate at 2, 4, 8 and 16 \
         members is within a hundredth of the best",
    ),
    Claim::direction(
        "spindle-window-500",
        "IV-A.2",
        "performance with window sizes of 500 ... starts declining after 10 nodes",
        |runs| declines(runs, 500),
    )
    .note(
        "slots beyond a socket's cache cost up to 150 ns each, which lowers the rate at all \
             sizes and does not make it fall; the paper's other cause, large writes, does not \
             come: batches stay at two messages",
    ),
    Claim::direction(
        "spindle-window-1000",
        "IV-A.2",
        "... or 1000 starts declining after 10 nodes",
        |runs| declines(runs, 1000),
    )
    .note("as with 500"),
    Claim::input(
        "spindle-slots-bytes",
        "IV-A.2",
        "the total space per subgroup amounts to roughly 16MB",
        16.0,
        "MB",
        Source::Configuration,
    )
    .note("n w (m + 8) = 16 x 100 x 10 248 bytes: arithmetic, 16.4 MB"),
    Claim::input(
        "spindle-2mb",
        "IV-A.2",
        "200 messages of 10KB ... a little less than 2MB",
        2.0,
        "MB",
        Source::Configuration,
    )
    .note("arithmetic: 200 x 10 240 bytes are 2.05 MB"),
    Claim::direction(
        "spindle-small-send-batches",
        "IV-A.2, Fig. 7",
        "Messages are typically sent in small batches of less than 5",
        |runs| {
            let share = of(runs, Sending::new(Batching, 16), Figure::SmallSendBatches)?;
            let words = format!("{} % of the batches", short(100.0 * share));
            Ok(Seen { holds: share > 0.5, words })
        },
    ),
    Claim::direction(
        "spindle-whole-delivery-batches",
        "IV-A.2, Fig. 7",
        "most delivery batches are multiples of 16",
        |runs| {
            let share = of(runs, Sending::new(Batching, 16), Figure::WholeDeliveryBatches)?;
            let words = format!("{} % of the batches", short(100.0 * share));
            Ok(Seen { holds: share > 0.5, words })
        },
    ),
    Claim::stated(
        "spindle-delivery-by-sender",
        "IV-A.2",
        "about 1-5 messages from each sender are typically delivered in a batch",
        Stated::Between(1.0, 5.0),
        "messages",
        |runs| Ok(of(runs, Sending::new(Batching, 16), Figure::DeliveryBatch)? / 16.0),
    ),
    Claim::number(
        "spindle-idle-1",
        "IV-A.3, Fig. 8",
        "Adding a single inactive subgroup degrades performance by 18% on average",
        18.0,
        "%",
        |runs| {
            let left = mean(|nodes| left(runs, Baseline, nodes, 2))?;
            Ok(100.0 * (1.0 - left))
        },
    )
    .note(
        "the delivery predicate takes the lock in each idle subgroup (Derecho's source), and \
             waits there for a sender that takes it again and again",
    ),
    Claim::number(
        "spindle-idle-50",
        "IV-A.3",
        "performance with 50 subgroups is one-tenth",
        0.1,
        "",
        |runs| {
            let left = each(&FEW, |nodes| left(runs, Baseline, nodes, 50))?;
            Ok(left.iter().map(|(_, left)| left).sum::<f64>() / left.len() as f64)
        },
    )
    .note("the average over 2, 4, 8 and 16 members; as with one idle subgroup"),
    Claim::direction(
        "spindle-idle-declines",
        "IV-A.3, Fig. 8",
        "performance consistently decreases with increasing number of subgroups",
        |runs| {
            let rates = each(&[1, 2, 5, 10, 20, 50], |subgroups| {
                rate(runs, Sending::new(Baseline, 16).idle(subgroups))
            })?;
            Ok(Seen::falls(&rates))
        },
    )
    .note("16 members; 1 to 50 subgroups"),
    Claim::direction(
        "spindle-idle-batching",
        "IV-A.3, Fig. 9",
        "adding more subgroups does not decrease performance invariably but even increases it",
        |runs| {
            let shares = each(&FEW, |nodes| {
                let shares = each(&[2, 10], |subgroups| left(runs, Batching, nodes, subgroups))?;
                Ok(shares.iter().map(|(_, share)| *share).fold(0.0, f64::max))
            })?;
            let holds = shares.iter().any(|(_, share)| *share > 1.0);
            Ok(Seen { holds, ..Seen::all_above(&shares, 1.0) })
        },
    )
    .note("in some cases: the best of 2 and 10 subgroups by one, for each number of members"),
    Claim::direction(
        "spindle-idle-graciously",
        "IV-A.3",
        "Even with 50 subgroups, the performance declines much more graciously",
        |runs| {
            let (batching, baseline) =
                (left(runs, Batching, 16, 50)?, left(runs, Baseline, 16, 50)?);
            let words = format!("{} left, of the baseline {}", short(batching), short(baseline));
            Ok(Seen { holds: batching > 2.0 * baseline, words })
        },
    ),
    Claim::number(
        "spindle-active-share-baseline-2",
        "IV-A.3",
        "evaluating the active subgroup's predicates ... 54% for 2 subgroups",
        54.0,
        "%",
        |runs| active(runs, Baseline, 2),
    )
    .note("an idle subgroup costs one wait for the lock, and the active one three"),
    Claim::stated(
        "spindle-active-share-baseline-50",
        "IV-A.3",
        "to less than 15% for 50 subgroups",
        Stated::AtMost(15.0),
        "%",
        |runs| active(runs, Baseline, 50),
    ),
    Claim::number(
        "spindle-active-share-2",
        "IV-A.3",
        "With opportunistic batching ... about 99% for 2 subgroups",
        99.0,
        "%",
        |runs| active(runs, Batching, 2),
    ),
    Claim::number("spindle-active-share-10", "IV-A.3", "90% for 10 subgroups", 90.0, "%", |runs| {
        active(runs, Batching, 10)
    }),
    Claim::number("spindle-active-share-50", "IV-A.3", "48% for 50 subgroups", 48.0, "%", |runs| {
        active(runs, Batching, 50)
    })
    .note("idle subgroups cost 0.6 us each"),
    batch!("spindle-send-batch-1", "from {1.72, ...} for 1 subgroup", 1.72, 1, SendBatch)
        .fitted()
        .note("through `lock_handoff_ns`: an application that finds the lock sooner sends more"),
    batch!("spindle-receive-batch-1", "{..., 22.18, ...}", 22.18, 1, ReceiveBatch),
    batch!("spindle-delivery-batch-1", "{..., 35.19}", 35.19, 1, DeliveryBatch),
    batch!("spindle-send-batch-2", "{6.20, ...} ... for 2", 6.20, 2, SendBatch),
    batch!("spindle-receive-batch-2", "{..., 49.36, ...}", 49.36, 2, ReceiveBatch),
    batch!("spindle-delivery-batch-2", "{..., 127.74}", 127.74, 2, DeliveryBatch),
    batch!("spindle-send-batch-10", "{21.67, ...} ... 10", 21.67, 10, SendBatch),
    batch!("spindle-receive-batch-10", "{..., 79.15, ...}", 79.15, 10, ReceiveBatch),
    batch!("spindle-delivery-batch-10", "{..., 334.48}", 334.48, 10, DeliveryBatch),
    batch!("spindle-send-batch-50", "{50.45, ...} ... 50 subgroups", 50.45, 50, SendBatch),
    batch!("spindle-receive-batch-50", "{..., 207.46, ...}", 207.46, 50, ReceiveBatch),
    batch!("spindle-delivery-batch-50", "{..., 638.57}", 638.57, 50, DeliveryBatch),
    Claim::direction(
        "spindle-batches-grow",
        "IV-A.3",
        "The average batch sizes for sends, receives and deliveries increase",
        |runs| {
            let (mut holds, mut words) = (true, Vec::new());
            for (stage, figure) in [
                ("send", Figure::SendBatch),
                ("receive", Figure::ReceiveBatch),
                ("delivery", Figure::DeliveryBatch),
            ] {
                let sizes = each(&[1, 2, 10, 50], |subgroups| {
                    of(runs, Sending::new(Batching, 16).idle(subgroups), figure)
                })?;
                let seen = Seen::rises(&sizes);
                holds &= seen.holds;
                words.push(format!("{stage} {}", seen.words));
            }
            Ok(Seen { holds, words: words.join("; ") })
        },
    ),
    Claim::direction(
        "spindle-all-active-gain",
        "IV-A.3",
        "vastly improves performance for the multiple active subgroups case",
        |runs| {
            let gains = each(&[2, 5, 10], |subgroups| {
                let of = |variant| rate(runs, super::last::all_active(variant, 16, subgroups));
                Ok(of(Batching)? / of(Baseline)?)
            })?;
            Ok(Seen::all_above(&gains, 2.0))
        },
    )
    .note("times the baseline at 16 members, with 2, 5 and 10 subgroups: at least twice"),
    Claim::direction(
        "spindle-all-active-drops",
        "IV-A.3",
        "performance drops considerably with increasing number of subgroups",
        |runs| {
            let rates = each(&[1, 2, 5, 10], |subgroups| {
                rate(runs, super::last::all_active(Batching, 16, subgroups))
            })?;
            Ok(Seen::falls(&rates))
        },
    )
    .note(
        "batching alone, all subgroups active, 16 members; more senders on a machine come to \
             the lock more often, and so batches of all subgroups grow",
    ),
];

/// The rate in so many subgroups by that in one.
fn left(runs: &Runs<'_>, variant: Variant, nodes: u16, subgroups: u16) -> Result<f64, Missing> {
    let case = Sending::new(variant, nodes);
    Ok(rate(runs, case.idle(subgroups))? / rate(runs, case)?)
}

/// The active subgroup's share of the polling thread's time at 16 members, in percent.
fn active(runs: &Runs<'_>, variant: Variant, subgroups: u16) -> Result<f64, Missing> {
    let case = Sending::new(variant, 16).idle(subgroups);
    Ok(100.0 * of(runs, case, Figure::ActiveShare)?)
}

/// Whether a window is worse from ten nodes on.
fn declines(runs: &Runs<'_>, window: u32) -> Result<Seen, Missing> {
    let rates =
        each(&SIZES, |nodes| rate(runs, Sending { window, ..Sending::new(Batching, nodes) }))?;
    let behind: Vec<_> = rates.iter().copied().filter(|(nodes, _)| *nodes >= 10.0).collect();
    Ok(Seen { holds: Seen::falls(&behind).holds, ..Seen::falls(&rates) })
}
