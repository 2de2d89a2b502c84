//! What RDMC's text says, section by section.
//!
//! | file | sections |
//! |---|---|
//! | `design` | 1 to 4: the protocol, its analysis |
//! | `setup` | 5.1: the machines |
//! | `microbenchmarks` | Fig. 4, 5.2.1 |
//! | `scale` | 5.2.2 |
//! | `resources` | 5.2.3, 5.3, 6 and 7 |

mod design;
mod microbenchmarks;
mod resources;
mod scale;
mod setup;

use super::case::{Case, Figure, Machine, Transfer, Way};
use super::claim::Claim;
use super::runs::{Missing, Runs};

/// All claims.
pub(super) const CLAIMS: &[&[Claim]] =
    &[design::CLAIMS, setup::CLAIMS, microbenchmarks::CLAIMS, scale::CLAIMS, resources::CLAIMS];

const MEGABYTE: usize = 1 << 20;

/// The paper's large message.
const LARGE: usize = 256 * MEGABYTE;

fn of(runs: &Runs<'_>, transfer: Transfer, figure: Figure) -> Result<f64, Missing> {
    runs.figure(Case::Transfer(transfer), figure)
}

/// From the send to the last completion, in microseconds.
fn latency(runs: &Runs<'_>, transfer: Transfer) -> Result<f64, Missing> {
    of(runs, transfer, Figure::LatencyUs)
}

/// A large message on Fractus.
const fn fractus(algorithm: Way, nodes: usize, bytes: usize) -> Transfer {
    Transfer::new(Machine::Fractus, algorithm, nodes, bytes)
}

/// A figure for each number.
fn each(
    places: &[usize],
    mut figure: impl FnMut(usize) -> Result<f64, Missing>,
) -> Result<Vec<(f64, f64)>, Missing> {
    places.iter().map(|place| Ok((*place as f64, figure(*place)?))).collect()
}
