//! The thread that packs what is copied, and sends it: a disk that is read from may take for ever, and its wait is not the
//! root's.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::source::Source;
use super::stream::Outgoing;
use crate::cli::exit::{Failure, Status};

/// Bytes and checksum of what was packed.
pub(super) type Packed = Result<(u64, String), Failure>;

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
        // A panic has said what it is.
        self.0.join().unwrap_or_else(|_| Err(Failure::silent(Status::Other)))
    }
}

/// Sends what it is about, and then all of it.
fn pack(source: &Source, stream: &mut Outgoing) -> Packed {
    let refused = |error: std::io::Error| Failure::told(Status::PeerLost, error);
    stream.manifest(&source.manifest).map_err(refused)?;
    source.pack(&mut *stream)?;
    stream.finish().map_err(refused)
}
