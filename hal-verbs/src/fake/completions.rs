//! Completion queues: capacity, notification and overflow.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::hardware::{CompletionEntry, Hardware, Queue, count_up, new_channel};
use super::locked;
use crate::adapter::{AsyncEvent, BATCH, Completion};

impl Hardware {
    /// Creates a queue, and returns its id and its channel.
    pub(super) fn create_queue(
        &mut self,
        context: u64,
        entries: u32,
    ) -> io::Result<(u64, Arc<OwnedFd>)> {
        let most = self.check(context)?.profile.limits.completion_entries_max;
        if entries == 0 || entries > most {
            return Err(Errno::INVAL.into());
        }
        let entries_max = usize::try_from(entries).map_err(|_| Errno::INVAL)?;
        self.check_locked(context, locked::queue_bytes(entries.into()))?;
        let channel = new_channel()?;
        let id = self.new_id();
        let queue = Queue {
            context,
            entries: VecDeque::new(),
            entries_max,
            vector: 0,
            is_armed: false,
            has_overrun: false,
            channel: Arc::clone(&channel),
        };
        self.queues.insert(id, queue);
        Ok((id, channel))
    }

    /// Takes completions.
    pub(super) fn take(&mut self, id: u64, into: &mut [Completion; BATCH]) -> io::Result<usize> {
        let queue = self.queues.get_mut(&id).ok_or(Errno::IO)?;
        if queue.has_overrun {
            return Err(Errno::IO.into());
        }
        let context = queue.context;
        let mut taken = 0;
        for place in into.iter_mut() {
            let Some(entry) = self.queues.get_mut(&id).and_then(|it| it.entries.pop_front()) else {
                break;
            };
            *place = entry.completion;
            taken += 1;
            if let Some(pair) = self.pairs.get_mut(&entry.pair)
                && pair.epoch == entry.epoch
            {
                pair.requester.freed = pair.requester.freed.max(entry.frees);
            }
        }
        if taken == 0 {
            self.check(context)?;
        }
        Ok(taken)
    }

    /// Requests an event at the next completion.
    pub(super) fn notify(&mut self, id: u64) -> io::Result<()> {
        let queue = self.queues.get_mut(&id).ok_or(Errno::IO)?;
        queue.is_armed = true;
        let context = queue.context;
        self.check(context)?;
        Ok(())
    }

    /// Adds a completion.
    pub(super) fn complete(
        &mut self,
        queue: u64,
        pair: u64,
        epoch: u64,
        frees: u64,
        completion: Completion,
    ) {
        let Some(found) = self.queues.get_mut(&queue) else { return };
        if found.has_overrun {
            return;
        }
        if found.entries.len() >= found.entries_max {
            return self.overrun(queue);
        }
        found.entries.push_back(CompletionEntry { completion, pair, epoch, frees });
        if std::mem::take(&mut found.is_armed) {
            count_up(&found.channel);
        }
    }

    /// Handles an overflow: the queue, and everything that reports to it, becomes unusable.
    fn overrun(&mut self, id: u64) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.has_overrun = true;
        self.counts.overruns += 1;
        let context = queue.context;
        self.tell(context, AsyncEvent::CompletionQueueError(id));
        let of_queue = self.pairs.iter().filter(|(_, pair)| pair.queue == id);
        let pairs: Vec<u64> = of_queue.map(|(pair, _)| *pair).collect();
        for pair in pairs {
            self.enter_error_told(pair);
        }
    }
}
