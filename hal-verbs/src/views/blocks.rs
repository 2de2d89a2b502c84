//! Blocks, which use the connections of their view.

use std::os::fd::AsFd;

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, HostBlocks, HostFabric, Token, Way,
};
use tramontane_core::ids::ViewId;

use super::fabric::RdmaViews;
use crate::fabric::BlockStore;

impl<S: HostFabric<Error = ErrorKind> + AsFd> HostBlocks for RdmaViews<S> {
    type Store = BlockStore;

    fn block_store(&self) -> BlockStore {
        self.site.block_store().clone()
    }
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> Blocks for RdmaViews<S> {
    fn block_limits(&self) -> BlockLimits {
        self.site.block_limits()
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let open = self.view_mut(from.view).ok_or(ErrorKind::Other)?;
        open.verbs.post_receive(from, into, length, token)
    }

    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let open = self.view_mut(to.view).ok_or(ErrorKind::Other)?;
        open.verbs.send(to, source, length, immediate, token)
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        if let Some(open) = self.view_mut(view) {
            open.verbs.close(view, channel);
        }
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        self.views.iter_mut().find_map(|view| view.verbs.poll_block())
    }
}
