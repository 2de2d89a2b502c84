//! Names of requests, by which a completion identifies its request.

/// Number of bits that a request's number occupies in its name.
const NUMBER_BITS: u32 = 47;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
const RECEIVE: u64 = 1 << NUMBER_BITS;

/// Connection, direction and number, packed into the 64 bits that a device returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(u64);

impl Name {
    /// Returns the name of the request with this number on a connection.
    pub(crate) const fn send(link: u16, number: u64) -> Self {
        Self(widen(link) << (NUMBER_BITS + 1) | number & NUMBER_MASK)
    }

    /// Returns the name of the receive with this number on a connection.
    pub(crate) const fn receive(link: u16, number: u64) -> Self {
        Self(widen(link) << (NUMBER_BITS + 1) | RECEIVE | number & NUMBER_MASK)
    }

    /// Converts a name that a device has returned.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the connection's index.
    pub(crate) fn link(self) -> usize {
        usize::try_from(self.0 >> (NUMBER_BITS + 1)).unwrap_or(usize::MAX)
    }

    pub(crate) const fn is_receive(self) -> bool {
        self.0 & RECEIVE != 0
    }

    /// Returns the whole number, which is not below `base` and less than `2^47` above it. A stale
    /// number becomes far greater than any that has been posted.
    pub(crate) const fn number_from(self, base: u64) -> u64 {
        base.wrapping_add(self.0.wrapping_sub(base) & NUMBER_MASK)
    }
}

#[allow(clippy::as_conversions, reason = "widening, in a const fn")]
const fn widen(link: u16) -> u64 {
    link as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_names_round_trip() {
        for (link, number) in
            [(0, 0), (7, 99), (u16::MAX, (1 << 47) - 1), (3, (1 << 47) + 5), (3, 5 << 50)]
        {
            let name = Name::from_raw(Name::send(link, number).raw());
            assert_eq!(name.link(), usize::from(link));
            assert!(!name.is_receive());
            assert_eq!(name.number_from(number.saturating_sub(10)), number);
            assert!(Name::receive(link, number).is_receive());
        }
    }

    #[test]
    fn stale_request_number_exceeds_all_posted_numbers() {
        assert!(Name::send(1, 5).number_from(6) > 1 << 40);
    }
}
