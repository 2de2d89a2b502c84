//! Blocks, by the connections of the view that they are of.

use tramontane_core::fabric::{
    Area, BlockEvent, BlockLimits, Blocks, Channel, ErrorKind, Token, Way,
};
use tramontane_core::ids::ViewId;
use tramontane_verbs::{BlockMemory, BlockStore};

use super::fabric::RdmaViews;

impl RdmaViews {
    /// What makes memory for blocks, of all views.
    #[must_use]
    pub const fn block_store(&self) -> &BlockStore {
        self.site.block_store()
    }

    /// Makes block memory known, in the views that there are and in those that come.
    ///
    /// # Errors
    /// [`ErrorKind::Other`] if another fabric's store made it.
    pub fn lend_blocks(&mut self, memory: &BlockMemory) -> Result<(), ErrorKind> {
        self.site.lend_blocks(memory)?;
        self.views.iter_mut().try_for_each(|view| view.verbs.lend_blocks(memory))
    }
}

impl Blocks for RdmaViews {
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
