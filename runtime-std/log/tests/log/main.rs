//! The log as its users meet it, on a disk that loses power, decays and fails, and on this one.

mod decay;
mod errors;
mod group_commit;
mod lives;
mod model;
mod power_loss;
mod restarts;
mod segments;
mod support;
