//! The first writes on a row's connection: see `fabric::probe`.

use tramontane_core::fabric::ErrorKind;

use super::{Link, NearEnd, RequestList, at};
use crate::adapter::{Operation, SendBuffers};
use crate::devices::mtu_bytes;
use crate::protocol::Counters;
use crate::site::{PROBE_BYTES_MAX, probe_offset};

impl Link {
    /// Returns the payload of a full packet in bytes.
    pub(crate) fn packet_bytes(&self) -> u32 {
        let far = self.near.as_ref().and_then(|near| near.far);
        far.map_or(0, |far| mtu_bytes(far.route.mtu))
    }

    /// Posts an empty write, followed by one that fills a packet. Both are signalled.
    pub(crate) fn post_probe(
        &mut self,
        buffers: &mut SendBuffers,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        self.post_one(buffers, Operation::Write, None, None, true, counters)?;
        let bytes = usize::try_from(self.packet_bytes()).unwrap_or(0).min(PROBE_BYTES_MAX);
        let Self { queue, near, index, .. } = self;
        let near = near.as_mut().ok_or(ErrorKind::Other)?;
        let far = near.far.ok_or(ErrorKind::Other)?;
        // The peer's copy of the row has the same length as the row.
        let offset = probe_offset(near.own_bytes);
        let target = at(far.target, offset)?;
        let NearEnd { queue_pair, source, .. } = near;
        let mut list = RequestList::new(buffers, *index, queue);
        list.push(Operation::Write(target), Some((&**source, offset, bytes)), false)?;
        list.post(queue_pair, queue, true, None, counters)
    }
}
