//! The thread that packs what is copied, and sends it: a disk that is read from may take for ever,
//! and the member goes on meanwhile.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::messages::Sum;
use super::source::Source;
use super::stream::Outgoing;
use crate::exit::{Failure, Status};

/// Bytes and checksum of what was packed.
type Packed = Result<Sum, Failure>;

/// A thread that packs and sends.
pub(super) struct Packing(JoinHandle<Packed>);

impl Packing {
    pub(super) fn start(source: &Arc<Source>, mut stream: Outgoing) -> Result<Self, Failure> {
        let source = Arc::clone(source);
        let packing = std::thread::Builder::new().name("tramontane-pack".into());
        let packing = packing.spawn(move || pack(&source, &mut stream));
        packing.map(Self).map_err(|error| Failure::system("cannot start a thread", &error))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    pub(super) fn end(self) -> Packed {
        // A panic has printed what it is.
        self.0.join().unwrap_or_else(|_| Err(Failure::silent(Status::Other)))
    }
}

fn pack(source: &Source, stream: &mut Outgoing) -> Packed {
    source.pack(&mut *stream)?;
    stream.finish().map_err(|error| Failure::with_text(Status::PeerLost, error))
}
