//! A notice on standard error to a user whose process waits for others on shared memory: each
//! user's groups are in a separate folder.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tramontane_runtime::shared_memory::Root;

/// Time after which a waiting process prints the notice.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// A wait for others. The notice is printed at most once before this is dropped.
pub struct WaitingNotice {
    /// Closed when the wait ends.
    _over: Sender<()>,
}

impl WaitingNotice {
    /// Begins to wait in a root. Returns `None` if the notice cannot be printed.
    pub fn begin(root: &Root) -> Option<Self> {
        let root = root.clone();
        let (over, is_over) = channel::<()>();
        let wait = move || {
            if is_over.recv_timeout(NOTICE_AFTER) == Err(RecvTimeoutError::Timeout) {
                let text = notice(&root, &root.of_other_users());
                // If standard error fails, there is nowhere else to write.
                let _ = text.map(|text| writeln!(io::stderr(), "{text}"));
            }
        };
        std::thread::Builder::new().name("tramontane-note".into()).spawn(wait).ok()?;
        Some(Self { _over: over })
    }
}

fn notice(root: &Root, others: &[PathBuf]) -> Option<String> {
    let others =
        others.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let own = root.path().display();
    (!others.is_empty()).then(|| {
        format!(
            "still waiting in {own}; another user has groups in {others}. On shared memory, one \
             user must run all members; use TCP (fabric tcp) for members of several users"
        )
    })
}
