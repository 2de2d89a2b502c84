//! What a process that waits for others on shared memory is told of the folders of other users.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::shared_memory::Root;

/// Whoever waits for longer is told.
const HINT_AFTER: Duration = Duration::from_secs(2);

/// A wait for others. The hint comes while this lives, once.
pub(super) struct Hint {
    /// Closed with the wait.
    _over: Sender<()>,
}

impl Hint {
    /// Begins to wait in a root. Nothing if there is nothing to tell.
    pub(super) fn begin(root: &Root) -> Option<Self> {
        let root = root.clone();
        let (over, is_over) = channel::<()>();
        let wait = move || {
            if is_over.recv_timeout(HINT_AFTER) == Err(RecvTimeoutError::Timeout) {
                let text = hint(&root, &root.of_other_users());
                // There is nowhere else to say it.
                let _ = text.map(|text| writeln!(io::stderr(), "{text}"));
            }
        };
        std::thread::Builder::new().name("tramontane-hint".into()).spawn(wait).ok()?;
        Some(Self { _over: over })
    }
}

fn hint(root: &Root, others: &[PathBuf]) -> Option<String> {
    let others =
        others.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let own = root.path().display();
    (!others.is_empty()).then(|| {
        format!(
            "still waiting in {own}; another user has groups in {others}: on shared memory members meet only if one user \
             runs them all; over TCP they may be of several (fabric tcp)"
        )
    })
}
