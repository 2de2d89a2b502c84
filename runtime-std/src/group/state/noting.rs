//! Updates a node's notes about the ends of its logs while the node is a member. A separate thread
//! writes them, so that no message waits for the disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::folder::StateFolder;
use super::noted_log::NotedLog;

/// The minimum interval between two notes.
const PAUSE: Duration = Duration::from_millis(50);

/// The divisor that limits the load on the disk: notes keep it busy for at most one part in `PARTS`
/// of the time.
const PARTS: u32 = 10;

/// The notes: the number of the view, and the logs.
type Notes = (u64, Vec<NotedLog>);

/// A node's folder while the node is a member, and the thread that updates the notes about the ends
/// of its logs.
#[derive(Debug)]
pub(crate) struct NotedFolder {
    folder: Arc<Mutex<StateFolder>>,
    raising: Option<Raising>,
}

#[derive(Debug)]
struct Raising {
    offered: Option<Sender<Notes>>,
    /// Whether the thread is waiting for notes.
    is_free: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NotedFolder {
    /// Creates the folder's handle for a node with or without logs.
    pub(crate) fn new(folder: StateFolder, has_logs: bool) -> std::io::Result<Self> {
        let folder = Arc::new(Mutex::new(folder));
        let raising = has_logs.then(|| Raising::start(Arc::clone(&folder))).transpose()?;
        Ok(Self { folder, raising })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, StateFolder> {
        lock(&self.folder)
    }

    /// Returns whether notes would be written right away.
    pub(crate) fn is_free(&self) -> bool {
        self.raising.as_ref().is_some_and(|raising| raising.is_free.load(Ordering::Acquire))
    }

    /// Passes notes to the thread, if it is free.
    pub(crate) fn raises(&self, view: u64, logs: Vec<NotedLog>) {
        let Some(raising) = self.raising.as_ref().filter(|_| self.is_free()) else { return };
        raising.is_free.store(false, Ordering::Release);
        if let Some(offered) = &raising.offered {
            // A thread that has ended writes nothing, but the notes remain valid lower bounds.
            let _ = offered.send((view, logs));
        }
    }
}

impl Raising {
    fn start(folder: Arc<Mutex<StateFolder>>) -> std::io::Result<Self> {
        let (offered, notes) = channel();
        let is_free = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new().name("tramontane-notes".into()).spawn({
            let is_free = Arc::clone(&is_free);
            move || raise_all(&folder, &notes, &is_free)
        })?;
        Ok(Self { offered: Some(offered), is_free, thread: Some(thread) })
    }
}

impl Drop for Raising {
    fn drop(&mut self) {
        self.offered = None;
        if let Some(thread) = self.thread.take() {
            // After that, the folder is available to another process.
            let _ = thread.join();
        }
    }
}

/// The thread.
fn raise_all(folder: &Mutex<StateFolder>, notes: &Receiver<Notes>, is_free: &AtomicBool) {
    let mut has_failed = false;
    loop {
        is_free.store(true, Ordering::Release);
        let Ok((view, logs)) = notes.recv() else { return };
        let began = Instant::now();
        let raised = lock(folder).raise(view, &logs);
        if let Err(error) = &raised
            && !has_failed
        {
            // The log is usually on the same disk, and reports its own failure.
            tracing::warn!(%error, "cannot note where the logs end");
        }
        has_failed = raised.is_err();
        let pause = PAUSE.max(began.elapsed() * PARTS);
        if notes.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
