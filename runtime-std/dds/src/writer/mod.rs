//! Writers.
//!
//! | file | subject |
//! |---|---|
//! | `data_writer` | the writer that applications have |
//! | `outlet` | how its messages get into the group's slots |
//! | `loan` | samples that are built there |
//! | `core` | what its application, the thread that delivers and the timers share |
//! | `listener`, `conditions` | how an application is told |

mod conditions;
mod core;
mod data_writer;
mod listener;
mod loan;
mod outlet;

pub(crate) use self::core::WriterCore;
pub use data_writer::DataWriter;
pub use listener::DataWriterListener;
pub use loan::{Loan, OctetsLoan};
pub(crate) use outlet::Outlet;
