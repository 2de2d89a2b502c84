//! Readers.
//!
//! | file | subject |
//! |---|---|
//! | `data_reader` | the reader that applications have |
//! | `core` | what the thread that delivers and those of the application share |
//! | `cache`, `instance` | what a reader keeps; one instance of it |
//! | `selection` | which samples a call means |
//! | `info`, `lent` | what stands beside a sample; the sample where it lies |
//! | `event` | what a reader tells its listener, of whichever type |
//! | `listener`, `conditions` | how an application is told |

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
