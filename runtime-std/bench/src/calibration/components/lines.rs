//! What another processor wrote: one cache line, and messages of some sizes.
//!
//! Two threads on two processors hand a ring of slots back and forth by ownership. One writes all
//! of it, the other reads all of it; each times its own part, and the way between them counts for
//! neither.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::pinned::Work;
use super::{REPETITIONS, pinned, time_ns};
use crate::error::BenchError;
use crate::spread::median;
use crate::touch;

/// Slots of a ring: as many as a sender has by default.
const SLOTS: usize = 100;

/// Times of one message's bytes, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Touched {
    /// Bytes of the message.
    pub(in super::super) bytes: usize,
    /// To write what another processor has read since the last write.
    pub(in super::super) write_ns: f64,
    /// To write the same again.
    pub(in super::super) write_again_ns: f64,
    /// To read what another processor wrote.
    pub(in super::super) read_foreign_ns: f64,
    /// To read it again.
    pub(in super::super) read_again_ns: f64,
}

/// Writes and reads a ring of messages of that size.
pub(in super::super) fn touched(bytes: usize) -> Result<Touched, BenchError> {
    let (to_reader, from_writer) = sync_channel::<Vec<u8>>(1);
    let (to_writer, from_reader) = sync_channel::<Vec<u8>>(1);
    to_writer.send(vec![0; SLOTS * bytes]).map_err(|_| gone())?;
    let write = move |ring: &mut [u8]| {
        ring.chunks_exact_mut(bytes).zip(0..).for_each(|(slot, number)| touch::write(slot, number));
        std::hint::black_box(ring);
    };
    let read = move |ring: &mut [u8]| {
        let sum = ring.chunks_exact(bytes).map(touch::read).fold(0_u64, u64::wrapping_add);
        std::hint::black_box(sum);
    };
    let to = to_writer;
    let ends: [Work<'_, [f64; 2]>; 2] = [
        Box::new(move || twice(&from_reader, &to_reader, write)),
        Box::new(move || twice(&from_writer, &to, read)),
    ];
    let [[write_ns, write_again_ns], [read_foreign_ns, read_again_ns]] =
        pinned::together([0, 1], ends)?;
    Ok(Touched { bytes, write_ns, write_again_ns, read_foreign_ns, read_again_ns })
}

/// Takes the ring, goes over it twice and passes it on, again and again: the medians of both, a
/// message.
fn twice(
    from: &Receiver<Vec<u8>>,
    to: &SyncSender<Vec<u8>>,
    over: impl Fn(&mut [u8]),
) -> Result<[f64; 2], BenchError> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..REPETITIONS {
        let mut ring = from.recv().map_err(|_| gone())?;
        first.push(time_ns(|| over(&mut ring)).0 / SLOTS as f64);
        second.push(time_ns(|| over(&mut ring)).0 / SLOTS as f64);
        // The last of all finds nobody.
        let _ = to.send(ring);
    }
    Ok([median(&first), median(&second)])
}

/// Lines that are read one after the other, each where the one before says.
const CHAIN: usize = 512;

/// Numbers of a line.
const LINE: usize = 8;

/// How long a read of a line takes that another processor wrote last, where nothing foretells which
/// line is next, in ns.
pub(in super::super) fn foreign_line_ns() -> Result<f64, BenchError> {
    let (to_reader, from_writer) = sync_channel::<Vec<u64>>(1);
    let (to_writer, from_reader) = sync_channel::<Vec<u64>>(1);
    to_writer.send(vec![0; CHAIN * LINE]).map_err(|_| gone())?;
    let ends: [Box<dyn FnOnce() -> Result<f64, BenchError> + Send>; 2] = [
        Box::new(move || {
            for _ in 0..REPETITIONS {
                let mut chain = from_reader.recv().map_err(|_| gone())?;
                link(&mut chain);
                let _ = to_reader.send(chain);
            }
            Ok(0.0)
        }),
        Box::new(move || {
            let mut times = Vec::new();
            for _ in 0..REPETITIONS {
                let chain = from_writer.recv().map_err(|_| gone())?;
                let (took_ns, end) = time_ns(|| follow(&chain));
                std::hint::black_box(end);
                times.push(took_ns / CHAIN as f64);
                let _ = to_writer.send(chain);
            }
            Ok(median(&times))
        }),
    ];
    let [_, line_ns] = pinned::together([0, 1], ends)?;
    Ok(line_ns)
}

/// Each line names the next, in an order without a stride: a step that no factor of the count
/// divides, and turned by a full-period generator.
fn link(chain: &mut [u64]) {
    let mut at = 0_usize;
    for _ in 0..CHAIN {
        // Of full period for a power of two: odd increment, and a multiplier of the form 4 n + 1.
        let next = (at * 173 + 127) % CHAIN;
        chain[at * LINE] = next as u64;
        at = next;
    }
}

fn follow(chain: &[u64]) -> u64 {
    (0..CHAIN).fold(0, |at, _| chain[at as usize * LINE])
}

fn gone() -> BenchError {
    BenchError::Setup("a microbenchmark's other thread ended early".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_each_line_once() {
        let mut chain = vec![u64::MAX; CHAIN * LINE];
        link(&mut chain);
        let mut seen = [false; CHAIN];
        let mut at = 0;
        for _ in 0..CHAIN {
            seen[at] = true;
            at = chain[at * LINE] as usize;
        }
        assert_eq!(seen, [true; CHAIN]);
        assert_eq!((at, follow(&chain)), (0, 0));
    }

    #[test]
    fn larger_messages_take_longer() {
        let (small, large) = (touched(128).expect("it runs"), touched(65_536).expect("it runs"));
        assert!(large.read_foreign_ns > small.read_foreign_ns, "{small:?} {large:?}");
        assert!(large.write_ns > small.write_ns, "{small:?} {large:?}");
    }
}
