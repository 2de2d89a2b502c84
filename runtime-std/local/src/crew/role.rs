//! The agreement between both ends of a crew.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The work of one kind of worker.
pub trait Role {
    /// Returns the words of this program's command line that start a worker. The assignment follows
    /// them.
    fn command() -> Vec<String>;
    /// A worker's task, which is known when it is started.
    type Task: Serialize + DeserializeOwned;
    /// A later message from the parent to a worker; `()` if there is none.
    type Order: Serialize + DeserializeOwned;
    /// A message from a worker to its parent.
    type Report: Serialize + DeserializeOwned + Send + 'static;
}

/// The argument of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment<T> {
    /// The processor to run on, by number; `None` lets the operating system choose.
    pub(super) processor: Option<usize>,
    pub(super) task: T,
}
