//! The records of each sender: the senders take records from the input in turn.

/// The records of one sender, in the order in which they are sent.
///
/// Of `total` records, sender `s` of `S` sends numbers `s`, `s + S`, `s + 2S`, and so on. Number
/// `n` is record `n mod records` of the input, because the input may be repeated.
#[derive(Clone, Debug)]
pub(super) struct Share {
    left: u64,
    /// Index of the next record in the input.
    record: usize,
    records: usize,
    senders: usize,
}

impl Share {
    /// Creates the share of the sender with rank `sender`.
    pub(super) fn new(sender: usize, senders: usize, records: usize, total: u64) -> Self {
        let (first, step) = (sender as u64, senders as u64);
        let left = total.saturating_sub(first).div_ceil(step.max(1));
        let record = if records == 0 { 0 } else { sender % records };
        Self { left, record, records, senders }
    }

    /// Returns the next record, if any is left.
    #[inline]
    pub(super) const fn peek(&self) -> Option<usize> {
        if self.left == 0 { None } else { Some(self.record) }
    }

    /// Advances to the next record.
    #[inline]
    pub(super) const fn advance(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.record += self.senders;
        if self.record >= self.records {
            // This division is rare. One division per message would cost as much as the rest of
            // this function.
            self.record %= if self.records == 0 { 1 } else { self.records };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_share_records_in_turn() {
        for senders in 1..6_usize {
            for records in 1..9_usize {
                for repeat in 1..4_u64 {
                    let total = records as u64 * repeat;
                    let mut shares: Vec<Share> = (0..senders)
                        .map(|sender| Share::new(sender, senders, records, total))
                        .collect();
                    assert_eq!(shares.iter().map(|share| share.left).sum::<u64>(), total);
                    for number in 0..total {
                        let share = &mut shares[(number % senders as u64) as usize];
                        assert_eq!(share.peek(), Some((number % records as u64) as usize));
                        share.advance();
                    }
                    assert!(shares.iter().all(|share| share.peek().is_none()));
                }
            }
        }
    }
}
