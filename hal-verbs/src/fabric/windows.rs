//! Keys of windows: bound, and taken back, by requests on the region's own connection.
//!
//! A request to bind is behind what this member posted to the peer before, and the peer is told its
//! key once it is done. To take a key back goes no further than the own device, so its completion
//! is waited for: some microseconds. It is not, where own writes to the peer are under way before
//! it, or when the device takes long: then the kernel ends the window, which is as certain.
//!
//! A window works on one queue pair and ends with its connection, so it is replaced when that is
//! made anew.

use std::io;

use tramontane_core::fabric::ErrorKind;

use super::Verbs;
use super::permissions::RegionLink;
use super::rights::WriteKey;
use crate::adapter::MemoryWindow;

/// How often completions are looked for before the kernel is called instead: longer than a device
/// takes, and less than a millisecond.
const LOOKS_MAX: u32 = 2000;

/// A window that a peer may write by.
#[derive(Debug)]
pub(super) struct WindowKey {
    window: MemoryWindow,
    bind: Bind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bind {
    /// There was no room for the request.
    Due,
    /// It is done once so many requests are.
    Posted(u64),
    Done,
}

impl WindowKey {
    /// Ends it by the kernel.
    pub(super) fn end(self) -> io::Result<()> {
        self.window.end()
    }
}

impl RegionLink {
    /// A key of the peer ends: it is told so, and writes with the key may be under way.
    pub(super) fn key_ended(&mut self, key: u32) {
        if self.announcer.may_be_known(key) {
            self.ended.push(key);
        }
        self.announcer.tell(None);
    }
}

impl Verbs {
    /// Has a window bound for a peer.
    pub(super) fn give_window(&mut self, index: usize) -> Result<(), ErrorKind> {
        let window = match self.regions[index].spare_window.take() {
            Some(window) => window,
            None => self.new_window(index)?,
        };
        if self.regions[index].ended.contains(window.next_key()) {
            self.make_anew(index)?;
        }
        self.regions[index].key = Some(WriteKey::Window(WindowKey { window, bind: Bind::Due }));
        self.bind_window(index);
        Ok(())
    }

    fn new_window(&self, index: usize) -> Result<MemoryWindow, ErrorKind> {
        let own = self.own_regions.get(usize::from(self.regions[index].number));
        let own = own.ok_or(ErrorKind::OutOfRange)?;
        MemoryWindow::new(&own.domain).map_err(|error| {
            tracing::warn!(%error, "no window for a region");
            ErrorKind::Other
        })
    }

    /// Posts the request to bind that is due, if there is one, and room.
    fn bind_window(&mut self, index: usize) {
        let Self { regions, links, buffers, .. } = self;
        let region = &mut regions[index];
        let Some(WriteKey::Window(key)) = &mut region.key else { return };
        let link = &mut links[region.link];
        if key.bind != Bind::Due || !link.queue.has_room_for_control() {
            return;
        }
        let bound = link.bind(buffers, &mut key.window);
        key.bind = Bind::Posted(link.queue.posted());
        if let Err(error) = bound {
            // The connection is broken, which its completions tell: then it is made anew.
            tracing::debug!(%error, "a window cannot be bound");
        }
    }

    /// Requests on a region's connection are done: a window may be bound, or there is room for it.
    pub(super) fn windows_go_on(&mut self, link: usize) {
        let Some(index) = self.regions.iter().position(|region| region.link == link) else {
            return;
        };
        let queue = &self.links[link].queue;
        let done = queue.posted() - queue.in_flight();
        let region = &mut self.regions[index];
        let Some(WriteKey::Window(key)) = &mut region.key else { return };
        match key.bind {
            Bind::Due => self.bind_window(index),
            Bind::Posted(at) if at <= done => {
                key.bind = Bind::Done;
                region.announcer.tell(Some(key.window.key()));
                let peer = region.peer;
                self.tell_peer(peer);
            }
            Bind::Posted(_) | Bind::Done => {}
        }
    }

    /// Takes a window's key back. When this returns, nothing more that was written with it lands.
    pub(super) fn end_window(&mut self, index: usize, key: WindowKey) -> io::Result<()> {
        let WindowKey { mut window, bind } = key;
        let region = &mut self.regions[index];
        region.key_ended(window.key());
        let link = region.link;
        if bind == Bind::Due {
            region.spare_window = Some(window);
            return Ok(());
        }
        let own_before = u64::from(bind != Bind::Done);
        let Self { links, buffers, .. } = self;
        let connection = &mut links[link];
        let is_quick = connection.queue.in_flight() <= own_before
            && connection.queue.has_room_for_control()
            && connection.invalidate(buffers, &window).is_ok();
        let (done_at, resets) = (connection.queue.posted(), connection.resets());
        if is_quick && self.is_done_soon(link, done_at) && self.links[link].resets() == resets {
            window.release();
            self.regions[index].spare_window = Some(window);
            return Ok(());
        }
        window.end()
    }

    /// Looks for a while whether so many requests of a connection are done.
    fn is_done_soon(&mut self, link: usize, count: u64) -> bool {
        for _ in 0..LOOKS_MAX {
            self.take_batch();
            let Some(link) = self.links.get(link) else { return false };
            if link.queue.posted() - link.queue.in_flight() >= count {
                return true;
            }
            if let Some(completions) = &self.completions {
                completions.relax();
            }
        }
        false
    }

    /// The connection was made anew: a window of the one before is worth nothing.
    pub(super) fn renew_window(&mut self, index: usize) {
        let region = &mut self.regions[index];
        let Some(WriteKey::Window(key)) = region.key.take() else { return };
        region.announcer.tell(None);
        // One that was not bound yet may be what broke the connection.
        let is_trusted = !matches!(key.bind, Bind::Posted(_));
        let given = match key.end() {
            Ok(()) if is_trusted => self.give_window(index),
            Ok(()) => self.give_registration(index),
            Err(_) => Err(ErrorKind::Other),
        };
        if given.is_err() {
            // The peer has lost its right, and would wait for ever.
            self.fail_post(self.regions[index].link);
        }
    }
}
