//! Quality of service: the policies of DDS's minimum profile, each of which is implemented or
//! refused. The guide has the whole table.
//!
//! | file | subject |
//! |---|---|
//! | `policies` | the policies |
//! | `sets` | the sets of policies of a writer and of a reader |
//! | `compatibility` | whether an offer meets a request |
//! | `refusals` | policies refused when a writer or a reader is created |

mod compatibility;
mod policies;
mod refusals;
mod sets;

pub use compatibility::incompatible;
pub(crate) use compatibility::is_ordered_across;
pub use policies::{
    AccessScope, Deadline, DestinationOrder, Durability, History, LatencyBudget, Lifespan,
    Liveliness, LivelinessKind, Ownership, PolicyId, Presentation, ReaderDataLifecycle,
    Reliability, ReliabilityKind, ResourceLimits, TimeBasedFilter, WriterDataLifecycle,
};
pub(crate) use refusals::{Bounds, check_reader, check_writer};
pub use sets::{ReaderQos, WriterQos};
