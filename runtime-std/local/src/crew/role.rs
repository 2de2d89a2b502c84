//! What both ends of a crew agree on.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The work of one kind of worker.
pub trait Role {
    /// The words of this program's command line that start a worker; the assignment follows.
    fn command() -> Vec<String>;
    /// What a worker is to do; known when it is started.
    type Task: Serialize + DeserializeOwned;
    /// What the parent sends to a worker later; `()` if it sends nothing.
    type Order: Serialize + DeserializeOwned;
    /// What a worker sends to its parent.
    type Report: Serialize + DeserializeOwned + Send + 'static;
}

/// The argument of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment<T> {
    /// The processor to stay on, by number; wherever the operating system wants if there is none.
    pub(super) processor: Option<usize>,
    pub(super) task: T,
}
