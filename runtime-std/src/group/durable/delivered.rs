//! A delivered message in the form that is logged, and sent to nodes that lack it.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::group::delivery::message::Message;

/// A delivered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivered {
    pub(crate) subgroup: u16,
    pub(crate) view: u64,
    pub(crate) place: u64,
    pub(crate) sender: u32,
    pub(crate) is_large: bool,
    pub(crate) payload: Vec<u8>,
}

/// A delivered message. All queues that contain it share one copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedMessage(pub(crate) Arc<Delivered>);

impl SharedMessage {
    pub(crate) fn of(message: &Message<'_>) -> Self {
        Self(Arc::new(Delivered {
            subgroup: message.subgroup.0,
            view: message.view.0,
            place: message.place.0,
            sender: message.sender.get(),
            is_large: message.is_large,
            payload: message.payload.to_vec(),
        }))
    }
}

impl Deref for SharedMessage {
    type Target = Delivered;

    fn deref(&self) -> &Delivered {
        &self.0
    }
}
