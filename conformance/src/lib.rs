//! The conformance suite: tests that any atomic multicast must pass. The suite knows no
//! implementation.
//!
//! | module | contents |
//! |---|---|
//! | [`history`] | the file between a driver and the checker |
//! | [`check`] | the checker: the checks and the judge of histories |
//! | [`drive`] | the driver, which records histories of any implementation through its adapter |
//! | [`program`] | check programs of the user |
//! | [`random`] | seeded random numbers for plans |
//! | [`report`] | text, JSON, JUnit and HTML |
//! | [`cli`] | the command line of `tramontane-conformance` |

pub mod check;
pub mod cli;
pub mod drive;
pub mod history;
pub mod program;
pub mod random;
pub mod report;
