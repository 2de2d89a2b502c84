//! Arbitrary bytes as input to the reader of a peer's frames, for a fuzzer, and for the tests
//! below, which generate them at random.

use tramontane_core::fabric::{Region, Token, ViewRows as _};
use tramontane_core::ids::{Rank, ViewId};

use super::blocks::Closed;
use super::frame::{Decoded, Frame};
use super::incoming::Incoming;
use super::memory::{Rows, rows_of};
use super::regions::{OwnRegions, PostedRead, Right};

const VIEW: ViewId = ViewId(1);
const DIGEST: u64 = 7;
const PEER: Rank = Rank(1);
const ROW_BYTES: usize = 256;

/// The regions. The peer may write to the first of them under this right.
const REGIONS: [Region; 2] = [Region(1), Region(2)];
const RIGHT: Right = Right::MIN;

/// Returns a reader whose peer is in the view and has a right.
fn reader(rows: &Rows, regions: &OwnRegions) -> Incoming {
    let mut incoming = Incoming::new(false);
    incoming.block_receiving.open(VIEW, Closed::default());
    incoming.landings.open(VIEW, rows, PEER).map(drop).unwrap_or_else(|end| panic!("{end:?}"));
    incoming.regions.own = regions.clone();
    incoming.regions.give(VIEW, REGIONS[0], RIGHT);
    incoming
}

fn regions() -> OwnRegions {
    let mut regions = OwnRegions::default();
    for region in REGIONS {
        regions.make(region, ROW_BYTES).unwrap_or_else(|error| panic!("{error}"));
    }
    regions
}

/// Reads bytes as a peer's stream, in pieces whose length the first byte determines.
///
/// # Panics
/// Panics if anything changes except the peer's own row and the memory to which the peer may write,
/// or if a frame has two forms.
pub fn frames(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let rows = rows_of(DIGEST, &[ROW_BYTES; 3]);
    let regions = regions();
    let mut incoming = reader(&rows, &regions);
    // The reader is waiting for an answer, into the region to which the peer may write.
    let into = regions.get(REGIONS[0]).cloned();
    let (view, region, token) = (VIEW, REGIONS[1], Token(1));
    let read = PostedRead { view, region, into, offset: 8, left: 40, token };
    incoming.regions.note_read(read).unwrap_or_else(|kind| panic!("{kind}"));
    for piece in bytes.chunks(usize::from(*piece) + 1) {
        if incoming.feed(piece, |_| {}).is_err() {
            break;
        }
    }
    assert!(
        is_empty(&rows, Rank(0)) && is_empty(&rows, Rank(2)),
        "somebody else's row has changed"
    );
    let closed = regions.get(REGIONS[1]).and_then(|memory| memory.content(0, ROW_BYTES).ok());
    assert_eq!(closed, Some(&[0; ROW_BYTES][..]), "a region has changed without a right");
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
    use tramontane_core::fabric::Channel;

    use super::*;
    use crate::frame::HEADER;

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
            (view(), 0..3_u16, prop_oneof![Just(1), number()], 0..4_u32).prop_map(
                |(view, region, right, writes)| Frame::List {
                    view,
                    region: Region(region),
                    writes,
                    right
                }
            ),
            number().prop_map(|lists| Frame::Taken { lists }),
            (view(), 0..3_u16, number()).prop_map(|(view, region, right)| Frame::Right {
                view,
                region: Region(region),
                right
            }),
            (0..3_u16, number())
                .prop_map(|(region, bytes)| Frame::Region { region: Region(region), bytes }),
            view().prop_map(|view| Frame::Close { view }),
            view().prop_map(|view| Frame::Closed { view }),
            (view(), 0..3_u16, number(), short()).prop_map(|(view, region, offset, length)| {
                Frame::Read { view, region: Region(region), offset, length }
            }),
            (view(), 0..3_u16, short(), prop_oneof![Just(40), number()]).prop_map(
                |(view, region, length, left)| Frame::Answer {
                    view,
                    region: Region(region),
                    length,
                    left
                }
            ),
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
            if let Frame::Write { length, .. } | Frame::Answer { length, .. } = frame {
                // Most frames are complete, so that the next one is read from its start.
                content
                    .resize(usize::try_from(length).map_or(0, |length| length.min(ROW_BYTES)), 7);
            } else if !matches!(frame, Frame::Block { .. }) {
                content.clear();
            }
            [&frame.encode()[..frame.length()], &content].concat()
        })
    }

    #[test]
    fn valid_write_is_stored() {
        // Otherwise, the attempts below would end at the first frame.
        let rows = rows_of(DIGEST, &[ROW_BYTES; 3]);
        let regions = regions();
        let mut incoming = reader(&rows, &regions);
        let open = Frame::Open { view: VIEW, row_bytes: ROW_BYTES as u64, digest: DIGEST };
        let write = Frame::Write { view: VIEW, region: Region::ROW, offset: 8, length: 8 };
        let bytes = [&open.encode()[..], &write.encode()[..write.length()], &[7; 8]].concat();
        incoming.feed(&bytes, |_| {}).expect("a member's");
        assert!(!is_empty(&rows, PEER));
        let (view, region) = (VIEW, REGIONS[0]);
        let list = Frame::List { view, region, writes: 1, right: RIGHT.get() };
        let write = Frame::Write { view, region, offset: 8, length: 8 };
        let bytes = [&list.encode()[..HEADER], &write.encode()[..HEADER], &[7; 8]].concat();
        incoming.feed(&bytes, |_| {}).expect("a member's");
        let landed = regions.get(region).and_then(|memory| memory.content(8, 8).ok());
        assert_eq!(landed, Some(&[7; 8][..]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn random_bytes_change_no_other_row(bytes in vec(any::<u8>(), 0..600)) {
            frames(&bytes);
        }

        #[test]
        fn random_frames_change_no_other_row(piece in any::<u8>(), said in vec(frame(), 0..8)) {
            let open = Frame::Open { view: VIEW, row_bytes: ROW_BYTES as u64, digest: DIGEST };
            frames(&[&[piece], &open.encode()[..], &said.concat()].concat());
        }
    }
}
