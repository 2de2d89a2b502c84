//! Whatever bytes, where a peer's frames are read: for a fuzzer, and for the tests here, which make
//! them at random.

use tramontane_core::fabric::ViewRows as _;
use tramontane_core::ids::{Rank, ViewId};

use super::blocks::Closed;
use super::frame::{Decoded, Frame};
use super::incoming::Incoming;
use super::memory::{Rows, rows_of};

const VIEW: ViewId = ViewId(1);
const DIGEST: u64 = 7;
const PEER: Rank = Rank(1);
const ROW_BYTES: usize = 256;

/// Reads bytes as a peer's stream, in pieces of the length that the first byte gives.
///
/// # Panics
/// If anything but the peer's own row changes, or a frame has two forms.
pub fn frames(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let rows = rows_of(DIGEST, &[ROW_BYTES; 3]);
    let mut incoming = Incoming::new(false);
    incoming.block_receiving.open(VIEW, Closed::default());
    incoming.landings.open(VIEW, &rows, PEER).map(drop).unwrap_or_else(|end| panic!("{end:?}"));
    for piece in bytes.chunks(usize::from(*piece) + 1) {
        if incoming.feed(piece, |_| {}).is_err() {
            break;
        }
    }
    assert!(
        is_empty(&rows, Rank(0)) && is_empty(&rows, Rank(2)),
        "somebody else's row has changed"
    );
    if let Decoded::Frame(frame) = Frame::decode(bytes) {
        assert_eq!(
            bytes[..frame.length()],
            frame.encode()[..frame.length()],
            "one frame has one form"
        );
    }
}

fn is_empty(rows: &Rows, of: Rank) -> bool {
    let row = rows.rows()[of.index()];
    (0..ROW_BYTES).step_by(8).all(|at| row.cell(at).is_ok_and(|cell| cell.load() == 0))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tramontane_core::fabric::{Channel, Region};

    use super::*;

    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let number = || prop_oneof![0..300_u64, any::<u64>()];
        let short = || prop_oneof![0..300_u32, any::<u32>()];
        let view = || prop_oneof![4 => Just(VIEW), 1 => (0..4_u64).prop_map(ViewId)];
        let frames = prop_oneof![
            (
                view(),
                prop_oneof![Just(ROW_BYTES as u64), number()],
                prop_oneof![Just(DIGEST), number()]
            )
                .prop_map(|(view, row_bytes, digest)| Frame::Open {
                    view,
                    row_bytes,
                    digest
                }),
            (view(), 0..2_u16, number(), short()).prop_map(|(view, region, offset, length)| {
                Frame::Write { view, region: Region(region), offset, length }
            }),
            Just(Frame::Wake),
            (view(), any::<u16>(), short(), short(), any::<u32>()).prop_map(
                |(view, channel, length, left, immediate)| Frame::Block {
                    view,
                    channel: Channel(channel),
                    length,
                    left,
                    immediate
                }
            ),
        ];
        (frames, vec(any::<u8>(), 0..300)).prop_map(|(frame, mut content)| {
            if let Frame::Write { length, .. } = frame {
                // Most are whole, so that the next is read where it begins.
                content
                    .resize(usize::try_from(length).map_or(0, |length| length.min(ROW_BYTES)), 7);
            }
            [&frame.encode()[..frame.length()], &content].concat()
        })
    }

    #[test]
    fn a_write_lands_here() {
        // Otherwise what is tried below ends at the first frame.
        let rows = rows_of(DIGEST, &[ROW_BYTES; 3]);
        let mut incoming = Incoming::new(false);
        incoming.landings.open(VIEW, &rows, PEER).map(drop).expect("it opens");
        let open = Frame::Open { view: VIEW, row_bytes: ROW_BYTES as u64, digest: DIGEST };
        let write = Frame::Write { view: VIEW, region: Region::ROW, offset: 8, length: 8 };
        let bytes = [&open.encode()[..], &write.encode()[..write.length()], &[7; 8]].concat();
        incoming.feed(&bytes, |_| {}).expect("a member's");
        assert!(!is_empty(&rows, PEER));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn no_bytes_touch_somebody_elses_row(bytes in vec(any::<u8>(), 0..600)) {
            frames(&bytes);
        }

        #[test]
        fn no_frames_touch_somebody_elses_row(piece in any::<u8>(), said in vec(frame(), 0..8)) {
            let open = Frame::Open { view: VIEW, row_bytes: ROW_BYTES as u64, digest: DIGEST };
            frames(&[&[piece], &open.encode()[..], &said.concat()].concat());
        }
    }
}
