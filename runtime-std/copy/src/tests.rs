//! Receivers that end at the worst moment, which an external signal could hardly hit. Each is a
//! thread that follows a receiver's steps up to that point.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use super::group::Job;
use super::place::TargetDirectory;
use super::receiving::{Receiving, receive};
use super::sending::{CopyError, send};
use tramontane_local::exit::{Failure, Status};

const PATIENCE: Duration = Duration::from_secs(60);

/// A time longer than the others need to notice that a receiver has ended.
const A_WHILE: Duration = Duration::from_secs(1);

/// A sender and some receivers over shared memory, together with a file and its destinations.
struct LocalCopy {
    folder: tempfile::TempDir,
    receivers: u32,
}

impl LocalCopy {
    fn to_receivers(receivers: u32) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        std::fs::write(folder.path().join("file"), vec![7; 1 << 20]).expect("a file");
        for own in 1..=receivers {
            std::fs::create_dir(folder.path().join(format!("to-{own}"))).expect("a directory");
        }
        Self { folder, receivers }
    }

    fn to(&self, own: u32) -> PathBuf {
        self.folder.path().join(format!("to-{own}"))
    }

    fn job(&self, own: u32) -> Job {
        Job::of_threads(self.folder.path(), self.receivers, own)
    }

    /// Runs the sender to its end.
    fn send(&self) -> Result<(), CopyError> {
        let files = [self.folder.path().join("file")];
        send(&mut self.job(0), &files, &AtomicBool::new(false), &|| Ok(())).map(drop)
    }

    /// Runs a receiver to its end.
    fn receive(&self, own: u32) -> Result<(), Failure> {
        receive(&mut self.job(own), &self.to(own), &AtomicBool::new(false)).map(drop)
    }

    /// Runs a receiver up to the end of `script`, after which it leaves without a notice.
    fn receive_until<T>(
        &self,
        own: u32,
        script: impl FnOnce(&Receiving<'_>, &mut TargetDirectory) -> T,
    ) -> T {
        let cancel = AtomicBool::new(false);
        let mut place = TargetDirectory::take(&self.to(own)).expect("a place");
        let receiving = Receiving::start(&mut self.job(own), &cancel).expect("they meet");
        script(&receiving, &mut place)
    }
}

fn is_placed(to: &Path) -> bool {
    to.join("file").exists()
}

#[test]
fn survivors_report_after_loss_during_move() {
    let copy = LocalCopy::to_receivers(2);
    let (gone, is_gone) = mpsc::channel();
    std::thread::scope(|scope| {
        let copy = &copy;
        let first = scope.spawn(move || {
            copy.receive_until(1, |receiving, place| {
                let received = receiving.unpack(place).expect("it comes");
                receiving.settle(place, &received).expect("all are ready");
                is_gone.recv_timeout(PATIENCE).expect("the other one goes");
                std::thread::sleep(A_WHILE);
                let told = receiving.all_placed(&received, place.directory());
                told.expect_err("not everywhere")
            })
        });
        scope.spawn(move || {
            copy.receive_until(2, |receiving, place| {
                let received = receiving.unpack(place).expect("it comes");
                let is_committed = |ledger: &super::ledger::CopyLedger| ledger.decision().is_some();
                receiving.member.wait_until(is_committed, |_| Ok(())).expect("it is decided");
                drop(received);
            });
            gone.send(()).expect("the first waits for it");
        });
        let Err(CopyError::Partly(failure)) = copy.send() else { panic!("some have it") };
        assert!(failure.text().contains("node 2"), "which went: {}", failure.text());
        assert!(
            failure.text().contains("node 1 reported success"),
            "which has it: {}",
            failure.text()
        );
        let told = first.join().expect("no panic");
        assert!(
            told.text().contains("is complete") && told.text().contains("node 2"),
            "{}",
            told.text()
        );
    });
    assert!(is_placed(&copy.to(1)) && !is_placed(&copy.to(2)));
}

#[test]
fn nodes_agree_after_loss_of_ready_receiver() {
    for round in (0..40).step_by(4) {
        let copy = LocalCopy::to_receivers(3);
        let (sent, others) = std::thread::scope(|scope| {
            let copy = &copy;
            let others = [1, 2].map(|own| scope.spawn(move || copy.receive(own)));
            scope.spawn(move || {
                copy.receive_until(3, |receiving, place| {
                    receiving.unpack(place).expect("it comes");
                    // In some rounds, this comes after the commit has been delivered, and in others
                    // before.
                    std::thread::sleep(Duration::from_millis(round));
                });
            });
            (copy.send(), others.map(|other| other.join().expect("no panic")))
        });
        println!("round {round}: {sent:?}");
        let are_placed = [1, 2].map(|own| is_placed(&copy.to(own)));
        match sent.expect_err("not every node has it") {
            CopyError::Nowhere(failure) => {
                assert_eq!(are_placed, [false; 2], "round {round}: {}", failure.text());
                assert!(failure.text().contains("node 3"), "{}", failure.text());
            }
            CopyError::Partly(failure) => {
                assert_eq!(are_placed, [true; 2], "round {round}: {}", failure.text());
                assert!(
                    failure.text().contains("node 1, node 2 reported success"),
                    "{}",
                    failure.text()
                );
            }
        }
        for told in others {
            let told = told.expect_err("not every node has it");
            assert!(told.text().contains("node 3"), "round {round}: {}", told.text());
        }
        assert!(!is_placed(&copy.to(3)));
    }
}

#[test]
fn single_receiver_stores_nothing_without_commit() {
    let copy = LocalCopy::to_receivers(1);
    let told = std::thread::scope(|scope| {
        let copy = &copy;
        let receiver = scope.spawn(move || copy.receive(1));
        scope.spawn(move || {
            let cancel = AtomicBool::new(false);
            let sender = super::member::CopyMember::start(&mut copy.job(0), None, &cancel);
            // Usually, the receiver has begun by then. Otherwise, it waits for the sender for the
            // time allowed for a start, and the outcome is the same.
            std::thread::sleep(Duration::from_millis(300));
            drop(sender.expect("they meet"));
        });
        receiver.join().expect("no panic").expect_err("there is no majority")
    });
    assert_eq!(told.status, Status::PeerLost);
    assert!(told.text().contains("node 0, the sender, was lost"), "{}", told.text());
    assert!(!is_placed(&copy.to(1)));
}

#[test]
fn sender_reports_uncertain_state_of_lost_receiver() {
    let copy = LocalCopy::to_receivers(1);
    let failure = std::thread::scope(|scope| {
        let copy = &copy;
        scope.spawn(move || {
            copy.receive_until(1, |receiving, place| {
                receiving.unpack(place).expect("it comes");
                let is_committed = |ledger: &super::ledger::CopyLedger| ledger.decision().is_some();
                receiving.member.wait_until(is_committed, |_| Ok(())).expect("it is decided");
            });
        });
        copy.send().expect_err("the receiver does not say so")
    });
    let CopyError::Partly(failure) = failure else { panic!("{failure:?}") };
    assert_eq!(failure.status, Status::PeerLost);
    assert!(failure.text().contains("node 1 was lost"), "{}", failure.text());
}
