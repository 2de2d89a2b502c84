//! The conformance suite: what every fabric must keep, and what every group must show.
//!
//! | module | what it holds |
//! |---|---|
//! | [`contract`] | the contract that every `Fabric` must meet, as generic tests |
//! | [`order`] | the judge of order, which knows no implementation |

pub mod check;
pub mod contract;
pub mod history;
pub mod order;
