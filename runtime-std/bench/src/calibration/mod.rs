//! This machine's profile, and how well the simulator predicts with it.
//!
//! `bench calibrate` measures components of the machine and fills a profile. `bench predict` runs
//! groups for real and in the simulator with that profile, and sets one beside the other. The two
//! share no run: what is measured for the one is in `components`, what is predicted in `held_out`.
//!
//! | file | what it holds |
//! |---|---|
//! | `command`, `run` | the arguments, and the two commands |
//! | `components` | microbenchmarks of this machine |
//! | `parameters` | a profile from what they measure |
//! | `state` | which readings are of one state of the machine |
//! | `held_out` | the runs that are predicted |
//! | `measuring`, `simulating` | these runs for real, and in the simulator |
//! | `errors`, `report` | how far predictions are off; the table |

pub(crate) mod command;
mod components;
mod errors;
mod held_out;
mod measuring;
mod parameters;
mod report;
pub(crate) mod run;
mod simulating;
mod state;
