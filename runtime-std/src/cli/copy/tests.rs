//! Receivers that go at the worst moment, which no signal from outside would hit: each is a thread that follows a receiver's
//! steps up to there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use super::group::{CHUNK_BYTES, Job};
use super::orders::Orders;
use super::place::Place;
use super::receiving::Receiving;
use super::sending::{CopyError, send};
use crate::blocks::{BlockNode, Group, GroupOptions};
use crate::cli::exit::Failure;
use crate::join::Meeting;
use crate::local::Carrier;
use crate::shared_memory::{GroupName, Root};

const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than the root takes to notice that a receiver went.
const A_WHILE: Duration = Duration::from_secs(1);

/// A root and two receivers over shared memory, a file, and where it is to go.
struct Copy {
    folder: tempfile::TempDir,
}

impl Copy {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        std::fs::write(folder.path().join("file"), vec![7; 1 << 20]).expect("a file");
        for own in [1, 2] {
            std::fs::create_dir(folder.path().join(format!("to-{own}"))).expect("a directory");
        }
        Self { folder }
    }

    fn to(&self, own: u32) -> PathBuf {
        self.folder.path().join(format!("to-{own}"))
    }

    fn job(&self, own: u32) -> Job {
        let name = GroupName::new("copy").expect("a name");
        let root = Root::under(self.folder.path());
        Job {
            nodes: vec![0, 1, 2],
            own,
            root: 0,
            meeting: Meeting::SharedMemory { root, name },
            join_timeout: PATIENCE,
            options: GroupOptions::for_fabric(Carrier::SharedMemory, CHUNK_BYTES),
        }
    }

    /// The root's part to its end.
    fn send(&self) -> Result<(), CopyError> {
        let files = [self.folder.path().join("file")];
        send(&self.job(0), &files, &AtomicBool::new(false), &|| Ok(())).map(drop)
    }

    /// A receiver's part as far as `script` goes; then it leaves without a word.
    fn receive<T>(&self, own: u32, script: impl FnOnce(&Receiving<'_>, Place) -> T) -> T {
        let cancel = AtomicBool::new(false);
        let job = self.job(own);
        let place = Place::take(&self.to(own)).expect("a place");
        let (node, reports) = joined(&job);
        let orders = Orders::open(&job, &node, &cancel).expect("a group");
        let receiving = Receiving { job: &job, node: &node, reports: &reports, orders: &orders };
        let result = script(&receiving, place);
        drop(node.close());
        result
    }
}

fn joined(job: &Job) -> (BlockNode, Group) {
    let node = job.join(&AtomicBool::new(false)).expect("they meet");
    let reports = job.reports(&node, job.own, super::messages::Quiet).expect("a group");
    (node, reports)
}

fn is_placed(to: &Path) -> bool {
    to.join("file").exists()
}

#[test]
fn the_living_are_heard_when_one_went_while_it_moved() {
    let copy = Copy::new();
    let (gone, is_gone) = mpsc::channel();
    std::thread::scope(|scope| {
        let copy = &copy;
        let first = scope.spawn(move || {
            copy.receive(1, |receiving, mut place| {
                let received = receiving.unpack(&mut place, &Arc::default()).expect("all have it");
                is_gone.recv_timeout(PATIENCE).expect("the other one goes");
                std::thread::sleep(A_WHILE);
                receiving.all_placed(&received, place.directory()).expect_err("not everywhere")
            })
        });
        scope.spawn(move || {
            copy.receive(2, |receiving, mut place| {
                receiving.unpack(&mut place, &Arc::default()).expect("all have it");
            });
            gone.send(()).expect("the first waits for it");
        });
        let Err(CopyError::Partly(failure)) = copy.send() else { panic!("some have it") };
        assert!(failure.text().contains("node 2"), "who went: {}", failure.text());
        assert!(failure.text().contains("node 1 said so"), "who has it: {}", failure.text());
        let told = first.join().expect("no panic");
        assert!(
            told.text().contains("in place in") && told.text().contains("node 2"),
            "{}",
            told.text()
        );
    });
    assert!(is_placed(&copy.to(1)));
}

#[test]
fn a_receiver_that_goes_before_all_move_leaves_the_others_with_what_the_root_says() {
    for round in (0..40).step_by(4) {
        let copy = Copy::new();
        let (sent, first): (_, Result<(), Failure>) = std::thread::scope(|scope| {
            let copy = &copy;
            let first = scope.spawn(move || {
                copy.receive(1, |receiving, place| {
                    let taken = receiving.take(place).map(drop);
                    drop(receiving.reports.close(PATIENCE));
                    taken
                })
            });
            scope.spawn(move || {
                copy.receive(2, |receiving, mut place| {
                    receiving.take_all(&mut place, &Arc::default()).expect("it comes");
                    // Now and then after the root has heard it, and now and then before.
                    std::thread::sleep(Duration::from_millis(round));
                });
            });
            (copy.send(), first.join().expect("no panic"))
        });
        let told = first.expect_err("not everybody has it");
        println!("round {round}: {sent:?}");
        match sent.expect_err("not everybody has it") {
            CopyError::Nowhere(failure) => {
                assert!(!is_placed(&copy.to(1)), "round {round}: {}", failure.text());
                assert!(failure.text().contains("node 2"), "{}", failure.text());
            }
            CopyError::Partly(failure) => {
                assert!(is_placed(&copy.to(1)), "round {round}: {}", failure.text());
                assert!(failure.text().contains("node 1 said so"), "{}", failure.text());
            }
        }
        assert!(told.text().contains("node 2"), "round {round}: {}", told.text());
    }
}
