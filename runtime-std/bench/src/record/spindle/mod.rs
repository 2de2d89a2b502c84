//! What Spindle's text says, section by section.
//!
//! The paper's averages are over subgroups of 2 to 16; it does not say which sizes. Here they are
//! those of [`SIZES`]. Its runs have a million messages of each sender. Here they are shorter, and
//! what it counts for a million is counted for each message and multiplied.
//!
//! | file | sections |
//! |---|---|
//! | `introduction` | abstract, I to III |
//! | `batching` | IV-A.1: one subgroup |
//! | `windows` | IV-A.2 and IV-A.3: windows, batches, idle subgroups |
//! | `nulls` | IV-B |
//! | `last` | IV-C to VI |

mod batching;
mod introduction;
mod last;
mod nulls;
mod windows;

use super::case::{Case, Figure, Sending, Variant, Who};
use super::claim::Claim;
use super::runs::{Missing, Runs};

/// All claims.
pub(super) const CLAIMS: &[&[Claim]] =
    &[introduction::CLAIMS, batching::CLAIMS, windows::CLAIMS, nulls::CLAIMS, last::CLAIMS];

/// Numbers that were looked at while the parameters of the paper's machine were chosen. That these
/// hold says less than that others do.
pub(super) const IN_VIEW: [&str; 31] = [
    "spindle-abstract-after",
    "spindle-batching-all",
    "spindle-batching-half",
    "spindle-batching-one",
    "spindle-batching-peak",
    "spindle-batching-16",
    "spindle-blocked-after",
    "spindle-blocked-before",
    "spindle-window-5",
    "spindle-idle-1",
    "spindle-active-share-baseline-2",
    "spindle-active-share-2",
    "spindle-active-share-10",
    "spindle-active-share-50",
    "spindle-receive-batch-1",
    "spindle-delivery-batch-1",
    "spindle-send-batch-2",
    "spindle-receive-batch-2",
    "spindle-delivery-batch-2",
    "spindle-send-batch-10",
    "spindle-receive-batch-10",
    "spindle-delivery-batch-10",
    "spindle-send-batch-50",
    "spindle-receive-batch-50",
    "spindle-delivery-batch-50",
    "spindle-null-iterations-delayed",
    "spindle-null-iterations-continuous",
    "spindle-between-2",
    "spindle-between-8",
    "spindle-between-16",
    "spindle-final-gain",
];

/// The sizes of subgroup over which averages are taken.
pub(super) const SIZES: [u16; 8] = [2, 4, 6, 8, 10, 12, 14, 16];

/// Messages of each sender in the paper.
const MILLION: f64 = 1e6;

/// GB/s of a case.
pub(super) fn rate(runs: &Runs<'_>, case: Sending) -> Result<f64, Missing> {
    Ok(of(runs, case, Figure::BytesPerSecond)? / 1e9)
}

pub(super) fn of(runs: &Runs<'_>, case: Sending, figure: Figure) -> Result<f64, Missing> {
    runs.figure(Case::Sending(case), figure)
}

/// A figure for each size.
pub(super) fn each(
    sizes: &[u16],
    mut figure: impl FnMut(u16) -> Result<f64, Missing>,
) -> Result<Vec<(f64, f64)>, Missing> {
    sizes.iter().map(|nodes| Ok((f64::from(*nodes), figure(*nodes)?))).collect()
}

/// The mean over the usual sizes.
fn mean(figure: impl FnMut(u16) -> Result<f64, Missing>) -> Result<f64, Missing> {
    let all = each(&SIZES, figure)?;
    Ok(all.iter().map(|(_, figure)| figure).sum::<f64>() / all.len() as f64)
}

/// One variant's rate by another's, at a size.
pub(super) fn gain(
    runs: &Runs<'_>,
    one: Variant,
    other: Variant,
    nodes: u16,
    senders: Who,
) -> Result<f64, Missing> {
    let of = |variant| rate(runs, Sending::new(variant, nodes).by(senders));
    Ok(of(one)? / of(other)?)
}
