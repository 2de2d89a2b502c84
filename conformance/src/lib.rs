//! The conformance suite contains tests that any atomic multicast must pass. The suite knows no
//! implementation.
//!
//! Begin with [`check::judge`], which judges a recorded history, or with the program
//! `tramontane-conformance run`, which records histories through an adapter.
//!
//! ```
//! use tramontane_conformance::check::{CheckId, Outcome, judge};
//!
//! // Two nodes deliver two messages in different orders.
//! let history = r#"
//! {"ev":"group","group":"g0","members":["n0","n1"],"senders":["n0","n1"]}
//! {"ev":"start","t_ns":1,"node":"n0","inc":1}
//! {"ev":"start","t_ns":2,"node":"n1","inc":1}
//! {"ev":"multicast","t_ns":3,"node":"n0","inc":1,"msg":"n0/1/0","groups":["g0"]}
//! {"ev":"multicast","t_ns":4,"node":"n1","inc":1,"msg":"n1/1/0","groups":["g0"]}
//! {"ev":"deliver","t_ns":5,"node":"n0","inc":1,"group":"g0","msg":"n0/1/0"}
//! {"ev":"deliver","t_ns":6,"node":"n0","inc":1,"group":"g0","msg":"n1/1/0"}
//! {"ev":"deliver","t_ns":7,"node":"n1","inc":1,"group":"g0","msg":"n1/1/0"}
//! {"ev":"deliver","t_ns":8,"node":"n1","inc":1,"group":"g0","msg":"n0/1/0"}
//! {"ev":"end","t_ns":9,"node":"n0","inc":1,"reason":"done"}
//! {"ev":"end","t_ns":10,"node":"n1","inc":1,"reason":"done"}
//! "#;
//! let verdict = judge(history.trim_start().as_bytes())?;
//! assert!(matches!(verdict.of(CheckId::TotalOrder).outcome, Outcome::Broken { .. }));
//! # Ok::<(), tramontane_conformance::history::HistoryError>(())
//! ```
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
