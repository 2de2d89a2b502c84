//! The conformance suite: what every fabric must keep, and what every atomic multicast must show.
//!
//! | module | what it holds |
//! |---|---|
//! | [`contract`] | the contract that every `Fabric` must meet, as generic tests |
//! | [`history`] | the file between a driver and the checker |
//! | [`check`] | the checker: what each check promises, and the judge of histories |
//! | [`drive`] | the driver, which makes histories of any implementation through its adapter |
//! | [`report`] | text, JSON, JUnit and HTML |
//! | [`cli`] | the command line of `tramontane-conformance` |

pub mod check;
pub mod cli;
pub mod contract;
pub mod drive;
pub mod history;
pub mod report;
