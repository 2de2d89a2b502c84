//! The files of a process in its group's folder. If they are removed, the process creates them
//! again.
//!
//! Files of a running group may be removed by programs that clean up `/dev/shm`, and at the end of
//! a session (`RemoveIPC` of systemd-logind). Members that have met do not need the names, because
//! they hold each other's files and sockets. But later members need them, and so do operators and
//! clients. So a thread checks the names several times per second, and creates them again if
//! necessary.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::descriptors::Datagram;
use super::error::Error;
use super::files::OwnFiles;
use super::folder::{Folder, Patience};
use super::member_file::{Identity, State};
use super::root::{GroupName, Root};

/// The interval between checks of the names.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// The interval between checks while the names are missing.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The maximum number of datagrams received in one call, which is more than a socket's queue holds.
const DATAGRAMS_MAX: usize = 4096;

/// The hold that a process has on its files in its group's folder.
#[derive(Debug)]
pub(super) struct OwnPlace {
    root: Root,
    group: GroupName,
    identity: Identity,
    path: PathBuf,
    state: Mutex<Holding>,
}

#[derive(Debug)]
struct Holding {
    folder: Arc<Folder>,
    /// `None` once this process has left.
    files: Option<OwnFiles>,
    /// The number of times that the names have been created again.
    made_again: u32,
    /// The reason why the names are missing and cannot be created again.
    lost: Option<String>,
}

impl OwnPlace {
    /// Claims the node's id, and creates the files.
    pub(super) fn claim(
        root: &Root,
        group: &GroupName,
        identity: &Identity,
        patience: &Patience<'_>,
    ) -> Result<Self, Error> {
        let files = OwnFiles::claim(root, group, identity, patience)?;
        let folder = Arc::clone(files.folder());
        let path = folder.path().to_owned();
        let holding = Holding { folder, files: Some(files), made_again: 0, lost: None };
        let (root, group, state) = (root.clone(), group.clone(), Mutex::new(holding));
        Ok(Self { root, group, identity: *identity, path, state })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn folder(&self) -> Arc<Folder> {
        Arc::clone(&self.state().folder)
    }

    /// Runs an action on the files, unless this process has left.
    pub(super) fn with_files<T>(&self, act: impl FnOnce(&mut OwnFiles) -> T) -> Option<T> {
        self.state().files.as_mut().map(act)
    }

    /// Receives the messages that peers have sent.
    pub(super) fn receive(&self, mut take: impl FnMut(Datagram)) {
        let state = self.state();
        for socket in state.files.iter().flat_map(OwnFiles::sockets) {
            for _ in 0..DATAGRAMS_MAX {
                match socket.receive() {
                    Ok(Some(received)) => take(received),
                    Ok(None) => break,
                    // Too many files may be open. The receive is retried at the next check.
                    Err(error) => {
                        tracing::warn!(%error, "cannot receive messages of other members");
                        return;
                    }
                }
            }
        }
    }

    /// Gives up the files. Returns false if that has already been done.
    pub(super) fn end(&self, end: State) -> bool {
        let files = self.state().files.take();
        files.inspect(|files| files.set_state(end)).is_some()
    }

    /// See [`super::residence::Residence::notice`].
    pub(super) fn notice(&self) -> Option<String> {
        let (state, path) = (self.state(), self.path.display());
        match (&state.lost, state.made_again) {
            (Some(why), _) => Some(format!(
                "the files of this node in {path} were removed and cannot be re-created: {why}; \
                 the members continue, but no process can join or query this node"
            )),
            (None, 0) => None,
            (None, times) => Some(format!(
                "files of this node in {path} were removed while it ran, and were re-created \
                 {times} times; keep cleaners away from that folder"
            )),
        }
    }

    /// Creates the names again if they are missing. Returns the time until the next check.
    fn look(&self) -> Duration {
        let mut state = self.state();
        let Holding { folder, files: Some(files), made_again, lost } = &mut *state else {
            return LOOK_PAUSE;
        };
        if files.are_in_place() {
            *lost = None;
            return LOOK_PAUSE;
        }
        // Waiting is not permitted, because the state's lock is held.
        let never = AtomicBool::new(false);
        let patience = Patience { until: Instant::now(), cancel: &never };
        match files.make_again(&self.root, &self.group, &self.identity, &patience) {
            Ok(()) => {
                *folder = Arc::clone(files.folder());
                (*made_again, *lost) = (made_again.saturating_add(1), None);
                tracing::warn!(
                    folder = %self.path.display(),
                    "this group's files in shared memory were removed while it runs; they are \
                     re-created, and no member is lost; keep cleaners away from that folder"
                );
                LOOK_PAUSE
            }
            Err(Error::Busy { .. }) => RETRY_PAUSE,
            Err(error) => {
                let why = Some(error.to_string());
                if *lost != why {
                    tracing::error!(
                        folder = %self.path.display(), %error,
                        "this group's files in shared memory were removed while it runs, and \
                         cannot be re-created; the members continue, but no process can join"
                    );
                    *lost = why;
                }
                LOOK_PAUSE
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Holding> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that checks the names of a process's files until this is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    is_over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(place: &Arc<OwnPlace>) -> Result<Self, Error> {
        let (place, is_over) = (Arc::clone(place), Arc::<(Mutex<bool>, Condvar)>::default());
        let path = place.path.clone();
        let end = Arc::clone(&is_over);
        let keep = move || {
            let (is_over, ended) = &*end;
            let mut pause = LOOK_PAUSE;
            loop {
                let over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = ended.wait_timeout_while(over, pause, |over| !*over);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                pause = place.look();
            }
        };
        let thread = std::thread::Builder::new().name("tramontane-names".into()).spawn(keep);
        let failed = |source| Error::Io { action: "cannot start a thread for", path, source };
        Ok(Self { is_over, thread: Some(thread.map_err(failed)?) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.is_over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.is_over.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}
