//! Short messages between two members of a copy: said in a buffer of their own, and heard as what they mean.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::talk::Said;
use crate::blocks::{BlockNode, Buffer, Group, Recipient};
use crate::cli::exit::{Failure, Status};
use crate::joined::BlockStore;

/// Bytes of what a member says at a time.
pub(super) const SAID_MAX: usize = 8 << 10;

/// A buffer with something to say in it, and how many bytes that is.
pub(super) fn written(
    store: &BlockStore,
    said: &impl Serialize,
) -> Result<(Buffer, usize), Failure> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::new(Status::Other, error, "please report this");
    let bytes = serde_json::to_vec(said).map_err(|error| wrong(&error))?;
    let mut buffer = Buffer::to_send(store, SAID_MAX)?;
    buffer.get_mut(..bytes.len()).ok_or_else(|| wrong(&"too much to say"))?.copy_from_slice(&bytes);
    Ok((buffer, bytes.len()))
}

/// Says something in a receiver's own group. Who cannot be told has ended, which is told otherwise.
pub(super) fn say(group: &Group, node: &BlockNode, said: &Said) -> Result<(), Failure> {
    let (buffer, bytes) = written(node.store(), said)?;
    let _ = group.send(buffer, bytes);
    Ok(())
}

/// Hears one member, and hands on what it means.
pub(super) struct Hearer<T, H> {
    store: BlockStore,
    hear: H,
    said: PhantomData<fn(T)>,
}

impl<T: DeserializeOwned, H: FnMut(T) + Send> Hearer<T, H> {
    pub(super) fn new(node: &BlockNode, hear: H) -> Self {
        Self { store: node.store().clone(), hear, said: PhantomData }
    }
}

impl<T: DeserializeOwned, H: FnMut(T) + Send> Recipient for Hearer<T, H> {
    fn incoming(&mut self, _: u64, bytes: usize) -> Option<Buffer> {
        Buffer::new(&self.store, bytes.max(SAID_MAX)).ok()
    }

    fn completed(&mut self, _: u64, buffer: Buffer, bytes: usize) {
        match buffer.get(..bytes).and_then(|bytes| serde_json::from_slice(bytes).ok()) {
            Some(said) => (self.hear)(said),
            None => tracing::warn!("another member says what cannot be understood"),
        }
    }
}

/// Of one's own messages there is nothing to be told but that they are through.
pub(super) struct Quiet;

impl Recipient for Quiet {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, _: Buffer, _: usize) {}
}
