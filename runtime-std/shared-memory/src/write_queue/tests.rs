//! Tests of a queue from both sides.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::fabric::{Area, Kind, Region};
use tramontane_core::ids::NodeId;
use tramontane_core::memory::Line;

use super::*;
use crate::map::Access;
use crate::region_memory::SharedRegionMemory;
use crate::root::{GroupName, Root};

const REGION_BYTES: usize = 300_000;

/// Both sides of a queue, and the region that it is for.
struct QueueEnds {
    writer: QueueWriter,
    reader: QueueReader,
    own: OwnRegions,
    _place: tempfile::TempDir,
}

impl QueueEnds {
    fn new() -> Self {
        let place = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let (root, name) = (Root::under(place.path()), GroupName::new("queue"));
        let (limit, never) = (Duration::from_secs(30), AtomicBool::new(false));
        let residence =
            Residence::claim(&root, &name.expect("a name"), NodeId(1), 1, 1, limit, &never);
        let residence = residence.expect("its place");
        let writer = QueueWriter::new(&residence, RING_BYTES_MIN).expect("memory");
        let bytes = RING_AT + RING_BYTES_MIN;
        let file = writer.file.as_ref().expect("nobody has it").as_fd();
        let map = Map::new(file, bytes, Access::Read).expect("mapped");
        let mut own = OwnRegions::default();
        let memory = residence.make_memory(HEADER_BYTES + REGION_BYTES).expect("memory");
        own[0] = Some(SharedRegionMemory(memory));
        let reader = QueueReader::new(map).expect("as long as a queue");
        Self { writer, reader, own, _place: place }
    }

    fn take(&mut self) -> Result<Option<Posted>, Nonsense> {
        let posted = self.reader.posted()?;
        let Some(list) = self.reader.next(posted)? else { return Ok(None) };
        self.reader.apply(&list, &self.own)?;
        Ok(Some(list))
    }
}

/// Returns a generator of random numbers that are the same in each run.
fn numbers(seed: u64) -> impl FnMut(u64) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from((state >> 33) % below).expect("small")
    }
}

/// Lists of all lengths and alignments, posted and taken at random, arrive as they were posted. The
/// model is a queue of the lists and an array for the region.
#[test]
fn write_lists_arrive_intact_and_in_order() {
    let mut ends = QueueEnds::new();
    let mut random = numbers(7);
    let lines: Vec<Line> = (0..REGION_BYTES.div_ceil(64)).map(|_| Line::new()).collect();
    let source = RowWriter::from_lines(&lines);
    let (mut model, mut waiting) = (vec![0_u8; REGION_BYTES], VecDeque::new());
    let (mut refused, mut right) = (0, 1);
    for turn in 0..8_000_u32 {
        let longest = [60, 2000, 40_000][random(3)];
        let writes: Vec<Write> = (0..=random(3))
            .map(|_| {
                let length = random(longest);
                let mut at = |region| Area { region, offset: random(200_000) };
                let (source, target) = (at(Region::ROW), at(Region(1)));
                Write { source, target, length, kind: Kind::Content }
            })
            .collect();
        let value = u8::try_from(turn % 251).expect("below 256");
        source.apply(random(200_000), &[value; 999]).expect("inside");
        let list = List { writes: &writes, region: RegionIndex(0), right: Right(right) };
        let mut is_taken = ends.writer.post(list, |_| Some(source.reader())).is_some();
        if !is_taken && waiting.is_empty() {
            ends.writer.note_taken(ends.reader.taken()).expect("it is so");
            is_taken = ends.writer.post(list, |_| Some(source.reader())).is_some();
            assert!(is_taken, "a queue that is known to be empty takes a list");
        }
        if is_taken {
            let bytes = |write: &Write| {
                let mut bytes = vec![0; write.length];
                source.reader().read(write.source.offset, &mut bytes).expect("inside");
                (write.target.offset, bytes)
            };
            waiting.push_back((right, writes.iter().map(bytes).collect::<Vec<_>>()));
            right += 2;
        } else {
            refused += 1;
        }
        for _ in 0..random(3) {
            let Some(taken) = ends.take().expect("sense") else {
                assert!(waiting.is_empty());
                break;
            };
            let (right, writes) = waiting.pop_front().expect("posted");
            assert_eq!(taken.right, Right(right));
            for (offset, bytes) in writes {
                model[offset..offset + bytes.len()].copy_from_slice(&bytes);
            }
        }
        if random(4) == 0 {
            ends.writer.note_taken(ends.reader.taken()).expect("it is so");
        }
        if turn % 64 == 0 {
            let mut seen = vec![0; REGION_BYTES];
            let memory = ends.own[0].as_ref().expect("made");
            memory.writer().reader().read(0, &mut seen).expect("all of it");
            assert!(seen == model, "turn {turn}");
        }
    }
    assert!(refused > 50, "the queue was full {refused} times");
}

/// Whatever a writer puts into its memory, its reader is not harmed, and no byte outside the region
/// changes. Impossible values are found.
#[test]
fn malformed_queue_entry_is_detected_and_harmless() {
    let mut random = numbers(11);
    let mut found = 0;
    for round in 0..400_u64 {
        let mut ends = QueueEnds::new();
        let write = Write {
            source: Area { region: Region::ROW, offset: 0 },
            target: Area { region: Region(1), offset: 64 },
            length: 200,
            kind: Kind::Content,
        };
        let lines = [const { Line::new() }; 8];
        let source = RowWriter::from_lines(&lines);
        let writes = [write; 3];
        let list = List { writes: &writes, region: RegionIndex(0), right: Right(1) };
        for _ in 0..4 {
            ends.writer.post(list, |_| Some(source.reader())).expect("room");
        }
        // One word of the first lists, or the count of posted bytes, is replaced by a random value.
        let place = [0, 8 * random(200)][usize::from(round % 8 != 0)];
        let huge = u64::MAX >> random(64);
        let word = [huge, huge & 0xffff_fff8, 1 << random(64)][random(3)];
        let at = if round % 8 == 0 { HEADER_BYTES } else { RING_AT + place };
        ends.writer.map.cell(at).store(word, Ordering::Relaxed);
        for _ in 0..5 {
            match ends.take() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(Nonsense) => {
                    found += 1;
                    break;
                }
            }
        }
    }
    assert!(found > 50, "{found} were found");
    let mut ends = QueueEnds::new();
    assert_eq!(ends.writer.note_taken(1), Err(Nonsense), "more than was posted");
    drop(ends.writer);
    assert_eq!(ends.reader.posted(), Ok(0), "nothing more is to be taken");
}

#[test]
fn ring_size_follows_regions_and_fits_longest_list() {
    assert_eq!((ring_bytes(0), ring_bytes(usize::MAX)), (RING_BYTES_MIN, RING_BYTES_MAX));
    assert_eq!(ring_bytes(3 << 20), 1 << 21);
    assert!(list_bytes_max(RING_BYTES_MAX) >= WRITES_MAX * (65_536 + 128));
    let mut ends = QueueEnds::new();
    let bytes = list_bytes_max(RING_BYTES_MIN) / WRITES_MAX;
    let lines: Vec<Line> = (0..1024).map(|_| Line::new()).collect();
    let source = RowWriter::from_lines(&lines);
    for turn in 0..40 {
        let at = |region| Area { region, offset: turn % 8 };
        let (source_at, target) = (at(Region::ROW), at(Region(1)));
        let write = Write { source: source_at, target, length: bytes, kind: Kind::Content };
        let writes = [write; WRITES_MAX];
        let list = List { writes: &writes, region: RegionIndex(0), right: Right(1) };
        let start = ends.writer.post(list, |_| Some(source.reader()));
        assert!(start.is_some(), "turn {turn}: the longest list, in an empty queue");
        assert!(ends.take().expect("sense").is_some());
        ends.writer.note_taken(ends.reader.taken()).expect("it is so");
    }
}
