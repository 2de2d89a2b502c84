//! A queue in an array. The queues of `heapless` use computed indices, and the compiler cannot
//! prove that they are in range. An image that uses such a queue would therefore not link under the
//! proof that no panic is reachable.

/// Up to `N` items, in first-in, first-out order.
#[derive(Debug)]
pub struct Queue<T, const N: usize> {
    items: [Option<T>; N],
    first: usize,
    length: usize,
}

impl<T: Copy, const N: usize> Queue<T, N> {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self { items: [None; N], first: 0, length: 0 }
    }

    /// Returns the number of items.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns the first item.
    pub fn first(&self) -> Option<&T> {
        self.items.get(self.first)?.as_ref()
    }

    /// Appends an item. Returns false if there is no room.
    pub fn push(&mut self, item: T) -> bool {
        if self.length >= N {
            return false;
        }
        let mut place = self.first.wrapping_add(self.length);
        if place >= N {
            place = place.wrapping_sub(N);
        }
        let Some(slot) = self.items.get_mut(place) else { return false };
        *slot = Some(item);
        self.length = self.length.wrapping_add(1);
        true
    }

    /// Removes and returns the first item.
    pub fn pop(&mut self) -> Option<T> {
        let item = self.items.get_mut(self.first)?.take()?;
        self.first = self.first.wrapping_add(1);
        if self.first >= N {
            self.first = 0;
        }
        self.length = self.length.wrapping_sub(1);
        Some(item)
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::collections::VecDeque;

    #[test]
    fn bounded_queue_matches_model() {
        let (mut queue, mut model) = (Queue::<u32, 3>::new(), VecDeque::new());
        let mut random = 7_u32;
        for item in 0..10_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 31 == 0 {
                assert_eq!(queue.push(item), model.len() < 3);
                if model.len() < 3 {
                    model.push_back(item);
                }
            } else {
                assert_eq!(queue.pop(), model.pop_front());
            }
            assert_eq!((queue.first(), queue.len()), (model.front(), model.len()));
        }
        queue.clear();
        assert_eq!((queue.pop(), queue.len()), (None, 0));
    }
}
