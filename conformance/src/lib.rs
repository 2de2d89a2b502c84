//! The conformance suite: tests that any atomic multicast must pass. The suite knows no
//! implementation.
//!
//! | module | what it holds |
//! |---|---|
//! | [`history`] | the file between a driver and the checker |
//! | [`check`] | the checker: what each check promises, and the judge of histories |
//! | [`drive`] | the driver, which makes histories of any implementation through its adapter |
//! | [`program`] | checks of one's own |
//! | [`random`] | the random numbers of a seed, for its plans |
//! | [`report`] | text, JSON, JUnit and HTML |
//! | [`cli`] | the command line of `tramontane-conformance` |

pub mod check;
pub mod cli;
pub mod drive;
pub mod history;
pub mod program;
pub mod random;
pub mod report;
