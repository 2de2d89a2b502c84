//! Group commit: all waiting records share one sync, an idle log is not synced, and commits end
//! when the disk fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tramontane_log::power_loss::{Faults, PowerLossFolder};
use tramontane_log::{AppendError, GroupCommit, GroupCommitOptions, Log, Options, Sequence};

use crate::support::{check, folder, identity, message, open, record};

const LONG: Duration = Duration::from_secs(60);

/// A gate in the committing thread, which stops after each commit until the gate is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<u64>, Condvar)>);

impl Gate {
    fn open(&self, times: u64) {
        *self.0.0.lock().expect("no panic") += times;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let allowed = self.0.0.lock().expect("no panic");
        let mut allowed = self.0.1.wait_while(allowed, |allowed| *allowed == 0).expect("no panic");
        *allowed -= 1;
    }
}

/// Opens a gate when a test ends, even if it panics.
struct OpensAtTheEnd(Gate);

impl Drop for OpensAtTheEnd {
    fn drop(&mut self) {
        self.0.open(1 << 20);
    }
}

fn roomy(folder: PowerLossFolder) -> Log<PowerLossFolder> {
    let options = Options { segment_bytes: 1 << 20, ..Options::default() };
    Log::open(folder, &identity(), options).expect("it opens").0
}

#[test]
fn records_appended_during_a_sync_share_the_next() {
    let (folder, gate) = (folder(), Gate::default());
    let log = roomy(folder.clone());
    let pass = gate.clone();
    let commits = GroupCommit::start(log, GroupCommitOptions::default(), move |_| pass.pass());
    let commits = commits.expect("a thread");
    let _opens = OpensAtTheEnd(gate.clone());
    let before = folder.syncs();
    commits.append(&record(0, &message(0, 100))).expect("there is room");
    assert!(commits.wait_durable(Sequence(1), LONG).expect("it goes on"));
    // The thread is now blocked, so all these records wait.
    for sequence in 1..200 {
        commits.append(&record(sequence, &message(sequence, 100))).expect("there is room");
    }
    assert_eq!(commits.durable(), Sequence(1));
    gate.open(10);
    assert!(commits.wait_durable(Sequence(200), LONG).expect("it goes on"));
    assert_eq!((commits.commits(), folder.syncs() - before), (2, 2), "one sync each, and no more");
    commits.end().expect("it is durable");
    let (log, _) = open(folder.after_power_loss(|| false, Faults::default()));
    assert_eq!((log.end().0, check(&log, 100)), (200, vec![]));
}

#[test]
fn each_commit_at_low_rate_costs_one_sync() {
    let folder = folder();
    let log = roomy(folder.clone());
    let commits = GroupCommit::start(log, GroupCommitOptions::default(), |_| {}).expect("a thread");
    commits.append(&record(0, b"the first, with its segment")).expect("there is room");
    assert!(commits.wait_durable(Sequence(1), LONG).expect("it goes on"));
    let before = (folder.syncs(), folder.folder_syncs(), folder.operations());
    for sequence in 1..100 {
        commits.append(&record(sequence, &message(sequence, 50))).expect("there is room");
        assert!(commits.wait_durable(Sequence(sequence + 1), LONG).expect("it goes on"));
    }
    let after = (folder.syncs(), folder.folder_syncs(), folder.operations());
    // One write and one sync per commit.
    assert_eq!(after, (before.0 + 99, before.1, before.2 + 2 * 99));
    assert_eq!(commits.commits(), 100);
}

#[test]
fn waiting_bytes_are_bounded_for_group_commit() {
    let (folder, gate) = (folder(), Gate::default());
    let pass = gate.clone();
    let options = GroupCommitOptions { waiting_bytes_max: 64 << 10 };
    let commits =
        GroupCommit::start(roomy(folder), options, move |_| pass.pass()).expect("a thread");
    let _opens = OpensAtTheEnd(gate.clone());
    commits.append(&record(0, &[1; 300_000])).expect("it goes alone");
    assert!(commits.wait_durable(Sequence(1), LONG).expect("it goes on"));
    let mut next = 1;
    let full = loop {
        match commits.append(&record(next, &[2; 1000])) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, AppendError::Full), "{full}");
    assert!((55..=64).contains(&next), "{next}");
    gate.open(100);
    assert!(commits.wait_durable(Sequence(next), LONG).expect("it goes on"));
    commits.append(&record(next, &[2; 1000])).expect("there is room again");
    commits.end().expect("all is durable");
}

#[test]
fn failed_sync_ends_group_commit_permanently() {
    let faults = Faults { failing_sync: Some(7), ..Faults::default() };
    let folder = PowerLossFolder::new(faults);
    let frontier = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&frontier);
    let log = roomy(folder.clone());
    let store = move |durable: Sequence| shown.store(durable.0, Ordering::SeqCst);
    let commits = GroupCommit::start(log, GroupCommitOptions::default(), store).expect("a thread");
    let mut next = 0;
    let stopped = loop {
        if let Err(error) = commits.append(&record(next, &message(next, 20))) {
            break error;
        }
        next += 1;
        if let Err(error) = commits.wait_durable(Sequence(next), LONG) {
            break error;
        }
    };
    assert!(matches!(&stopped, AppendError::Stopped(_)), "{stopped}");
    assert!(stopped.to_string().contains("the disk failed"), "{stopped}");
    assert_eq!((commits.durable().0, frontier.load(Ordering::SeqCst), next), (2, 2, 3));
    assert!(matches!(commits.append(&record(next, b"more")), Err(AppendError::Stopped(_))));
    assert!(commits.end().is_err());
    let (log, _) = open(folder.after_power_loss(|| false, Faults::default()));
    assert_eq!((log.end().0, check(&log, 20)), (2, vec![]));
}

#[test]
fn log_is_readable_during_group_commit() {
    let folder = folder();
    let log = roomy(folder.clone());
    let commits = GroupCommit::start(log, GroupCommitOptions::default(), |_| {}).expect("a thread");
    for sequence in 0..500 {
        commits.append(&record(sequence, &message(sequence, 100))).expect("there is room");
    }
    assert!(commits.wait_durable(Sequence(500), LONG).expect("it goes on"));
    let view = tramontane_core::ids::ViewId(1);
    let begun = commits.with_log(|log| log.write_snapshot(Sequence(400), view));
    let mut writer = begun.expect("a snapshot");
    writer.write(b"the state").expect("it is written");
    let written = writer.finish().expect("it is synced");
    commits.with_log(|log| log.install_snapshot(written)).expect("it is renamed");
    commits.with_log(|log| log.let_go_below(Sequence(400))).expect("the snapshot reaches there");
    let damaged = commits.with_log(|log| (log.first().0, check(log, 100)));
    assert_eq!(damaged, (400, vec![]));
    commits.end().expect("all is durable");
}
