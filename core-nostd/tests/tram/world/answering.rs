//! An application whose answers name the message and the group.

use tramontane_core::ids::GroupId;
use tramontane_core::tram::{Delivered, MessageId, ShardApplication};

/// Returns a group's answer to a message. Some answers are empty, and some exceed the limit of 20.
pub fn expected_answer(id: MessageId, group: GroupId) -> Vec<u8> {
    let number = id.number % 1_000;
    let length = (number * 7 + u64::from(group.0) * 3) % 24;
    let seed = number * 31 + u64::from(id.incarnation) * 7 + u64::from(group.0) * 3;
    (0..length).map(|at| (seed + at + u64::from(id.client.0)) as u8).collect()
}

/// Calls a closure for each delivery, and answers.
pub struct Answering<F> {
    deliver: F,
    group: GroupId,
    answer: Vec<u8>,
}

impl<F> Answering<F> {
    pub fn new(deliver: F, group: GroupId) -> Self {
        Self { deliver, group, answer: Vec::new() }
    }
}

impl<F: FnMut(&Delivered<'_>) -> u8> ShardApplication for Answering<F> {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        self.answer = expected_answer(message.id, self.group);
        (self.deliver)(message)
    }

    fn answer(&self) -> &[u8] {
        &self.answer
    }
}
