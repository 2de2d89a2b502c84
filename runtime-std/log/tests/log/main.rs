//! The log as seen by its users, on a disk that loses power, decays and fails, and on a real one.

mod decay;
mod errors;
mod group_commit;
mod lives;
mod model;
mod power_loss;
mod restarts;
mod segments;
mod support;
