//! Reports: what people and machines read of a run. One subject a file; none of them judges.

mod case;

pub use case::{Case, CaseStatus, Run};
