//! Encoded commands that have no slot yet.
//!
//! Those of a few bytes lie one after the other in one buffer, so that none of them needs memory of
//! its own. Longer ones keep theirs, because copying them would cost more.

use std::collections::VecDeque;

use super::answers::Key;

/// The buffer's size in bytes above which its memory is returned once no command waits.
const KEEP_BYTES: usize = 1 << 20;

/// The longest command in bytes that is copied into the buffer.
const COPIED_BYTES_MAX: usize = 2048;

/// A queue of commands, in the order of proposal.
pub(super) struct Unslotted {
    queue: VecDeque<(Key, Encoded)>,
    /// The bytes of all copied commands. The first `start` bytes are no longer needed.
    copied: Vec<u8>,
    start: usize,
    /// The number of large commands.
    large: usize,
    /// The total size of the commands that keep their memory.
    kept_bytes: usize,
}

enum Encoded {
    /// The length in bytes of a small command in the buffer.
    Copied(usize),
    /// The bytes of another small command.
    Small(Vec<u8>),
    /// The bytes, which are gone once the command is being sent.
    Large(Option<Vec<u8>>),
}

impl Unslotted {
    pub(super) const fn new() -> Self {
        Self { queue: VecDeque::new(), copied: Vec::new(), start: 0, large: 0, kept_bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the total size of these commands in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.copied.len() - self.start + self.kept_bytes
    }

    /// Adds a command that fits a slot. Takes its bytes if they are not copied.
    pub(super) fn push_small(&mut self, key: Key, bytes: &mut Vec<u8>) {
        let encoded = if bytes.len() <= COPIED_BYTES_MAX {
            self.copied.extend_from_slice(bytes);
            Encoded::Copied(bytes.len())
        } else {
            self.kept_bytes += bytes.len();
            // The next command is probably as long.
            let next = Vec::with_capacity(bytes.len());
            Encoded::Small(std::mem::replace(bytes, next))
        };
        self.queue.push_back((key, encoded));
    }

    pub(super) fn push_large(&mut self, key: Key, bytes: Vec<u8>) {
        self.large += 1;
        self.kept_bytes += bytes.len();
        self.queue.push_back((key, Encoded::Large(Some(bytes))));
    }

    /// Returns the number of small commands before the first large one.
    pub(super) fn small_first(&self) -> usize {
        if self.large == 0 {
            return self.queue.len();
        }
        let is_small = |(_, encoded): &&(Key, Encoded)| !matches!(encoded, Encoded::Large(_));
        self.queue.iter().take_while(is_small).count()
    }

    /// Returns the first command, if it is small.
    pub(super) fn first_small(&self) -> Option<(Key, &[u8])> {
        match self.queue.front()? {
            (key, Encoded::Copied(length)) => {
                Some((*key, &self.copied[self.start..self.start + length]))
            }
            (key, Encoded::Small(bytes)) => Some((*key, bytes)),
            (_, Encoded::Large(_)) => None,
        }
    }

    /// Returns the bytes of the first command, which keeps its place, if it is large.
    pub(super) fn take_large_bytes(&mut self) -> Option<(Key, Vec<u8>)> {
        let (key, Encoded::Large(bytes)) = self.queue.front_mut()? else { return None };
        let bytes = bytes.take()?;
        self.kept_bytes -= bytes.len();
        Some((*key, bytes))
    }

    pub(super) fn is_large_first(&self) -> bool {
        matches!(self.queue.front(), Some((_, Encoded::Large(_))))
    }

    /// Removes the first command, unless it is large and being sent.
    pub(super) fn pop_unless_sending(&mut self) -> Option<Key> {
        match self.queue.front()? {
            (_, Encoded::Large(None)) => None,
            _ => self.pop(),
        }
    }

    /// Removes the first command. Returns its entry.
    pub(super) fn pop(&mut self) -> Option<Key> {
        let (key, encoded) = self.queue.pop_front()?;
        match encoded {
            Encoded::Copied(length) => self.start += length,
            Encoded::Small(bytes) => self.kept_bytes -= bytes.len(),
            Encoded::Large(bytes) => {
                self.large -= 1;
                self.kept_bytes -= bytes.map_or(0, |bytes| bytes.len());
            }
        }
        if self.start == self.copied.len() {
            self.start = 0;
            self.copied.clear();
            if self.copied.capacity() > KEEP_BYTES {
                self.copied = Vec::new();
            }
        } else if self.start > self.copied.len() / 2 {
            self.copied.drain(..self.start);
            self.start = 0;
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::answers::AnswerTable;
    use super::*;

    /// Compares the queue with a plain one, with lengths that let the buffer wrap often, and some
    /// that are not copied.
    #[test]
    fn commands_keep_their_order_and_bytes() {
        let mut answers = AnswerTable::<()>::new();
        let (mut queue, mut model) = (Unslotted::new(), VecDeque::new());
        for number in 0_u32..5_000 {
            let length = (number * 7 % 23) as usize + (number % 5 / 4) as usize * COPIED_BYTES_MAX;
            let bytes = vec![number as u8; length];
            let key = answers.add(false);
            let is_large = number % 11 == 3;
            match is_large {
                true => queue.push_large(key, bytes.clone()),
                false => queue.push_small(key, &mut bytes.clone()),
            }
            model.push_back((key, bytes, is_large));
            for _ in 0..number % 3 {
                let Some((key, bytes, is_large)) = model.pop_front() else { break };
                assert_eq!(queue.is_large_first(), is_large);
                match is_large {
                    true => assert_eq!(queue.take_large_bytes(), Some((key, bytes))),
                    false => assert_eq!(queue.first_small(), Some((key, bytes.as_slice()))),
                }
                assert_eq!(queue.pop(), Some(key));
            }
            assert_eq!(queue.len(), model.len());
            assert_eq!(queue.bytes(), model.iter().map(|(_, bytes, _)| bytes.len()).sum::<usize>());
            let small = model.iter().take_while(|(.., is_large)| !is_large).count();
            assert_eq!(queue.small_first(), small);
        }
    }
}
