//! Writers.
//!
//! | file | subject |
//! |---|---|
//! | `data_writer` | the writer of applications |
//! | `outlet` | the path of its messages into the group's slots |
//! | `loan` | samples built in these slots |
//! | `core` | state shared by its application, the delivering thread and the timers |
//! | `listener`, `conditions` | notification of the application |

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
