//! Tasks that wait for slots without blocking a thread.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tramontane_runtime::group::Sender;
use tramontane_runtime::member::SendError;

use crate::group_support::{Crowd, carriers, message};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An executor of one task: it polls the task only when the task has been woken.
pub fn block_on<F: Future>(task: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Sends the messages of a node, one after the other.
fn send_all(mut sender: Sender, node: u32, count: u64) -> Result<(), SendError> {
    block_on(async {
        for number in 0..count {
            sender.send_async(&message(node, number)).await?;
        }
        Ok(())
    })
}

#[test]
fn tasks_send_more_messages_than_slots() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 2);
        crowd.start_all(&[0, 1]);
        let tasks = [0, 1].map(|node| {
            let sender = crowd.sender(node);
            std::thread::spawn(move || send_all(sender, node, 3_000))
        });
        for task in tasks {
            task.join().expect("no panic").expect("sent");
        }
        crowd.await_all_of(&[0, 1], &[0, 1], 3_000);
        crowd.assert_same(&[0, 1]);
    }
}

#[test]
fn task_continues_in_the_next_view() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3);
        crowd.start_all(&[0, 1, 2]);
        let sender = crowd.sender(0);
        let task = std::thread::spawn(move || send_all(sender, 0, 3_000));
        crowd.await_that("a message", || !crowd.messages_at(1).is_empty());
        crowd.kill(2);
        task.join().expect("no panic").expect("sent");
        crowd.await_all_of(&[0, 1], &[0], 3_000);
        crowd.assert_same(&[0, 1]);
    }
}

#[test]
fn task_ends_with_its_member() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 2);
        crowd.start_all(&[0, 1]);
        let sender = crowd.sender(0);
        let task = std::thread::spawn(move || send_all(sender, 0, u64::MAX));
        crowd.await_that("a message", || !crowd.messages_at(1).is_empty());
        crowd.close(0);
        let ended = task.join().expect("no panic").expect_err("no member sends");
        assert!(matches!(ended, SendError::Stopped(_)), "{ended}");
    }
}
