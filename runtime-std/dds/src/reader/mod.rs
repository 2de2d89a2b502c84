//! Readers.
//!
//! | file | subject |
//! |---|---|
//! | `data_reader` | the reader of applications |
//! | `core` | state shared by the delivering thread and those of the application |
//! | `cache`, `instance` | the samples that a reader keeps; those of one instance |
//! | `selection` | the samples to which a call applies |
//! | `info`, `lent` | the information about a sample; the sample in place |
//! | `event` | type-independent events for a reader's listener |
//! | `listener`, `conditions` | notification of the application |

mod cache;
mod conditions;
mod core;
mod data_reader;
mod event;
mod info;
mod instance;
mod lent;
mod listener;
mod selection;

pub(crate) use self::cache::Arrival;
pub(crate) use self::core::ReaderCore;
pub use data_reader::DataReader;
pub(crate) use event::AnyListener;
pub use event::Disposition;
pub use info::{InstanceStates, SampleInfo, SampleStates, ViewStates};
pub use lent::{Lent, Sample};
pub use listener::{DataReaderListener, OnSample};
pub use selection::Selection;
