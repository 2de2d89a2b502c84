//! The preparation of the next view, from its memory to its node.

use std::sync::Arc;

use tramontane_core::fabric::Fabric as _;
use tramontane_core::ids::NodeId;

use super::open_view::OpenView;
use super::parts::Parts;
use super::view_memory::open_view;
use crate::group::description::layout::ViewLayout;
use crate::group::description::view::View;
use crate::member::{Memory, Stopped};

/// The next view, with the memory and the node that have been prepared for it so far.
pub(crate) struct Prepared {
    pub(crate) view: View,
    /// The list from which the view was created.
    pub(crate) list: Vec<NodeId>,
    layout: Arc<ViewLayout>,
    memory: Memory,
}

/// Allocates a view's memory. `list` is the core's list of its members.
pub(crate) fn prepare<A>(
    parts: &mut Parts<A>,
    view: View,
    list: Vec<NodeId>,
) -> Result<Prepared, Stopped> {
    let participant = &parts.participant;
    let failed = Stopped::NoMemory;
    let layout =
        participant.description.view_layout(&view).map_err(|error| failed(error.to_string()))?;
    let own = view
        .rank_of(participant.own)
        .ok_or_else(|| failed("this node is not in the view".into()))?;
    let memory = open_view(&mut parts.fabric, layout.get(), own, view.id);
    let memory = memory.map_err(|error| failed(error.to_string()))?;
    Ok(Prepared { view, list, layout: Arc::new(layout), memory })
}

/// Opens the node of a view on its memory.
pub(crate) fn open<A>(
    parts: &Parts<A>,
    prepared: Prepared,
) -> Result<(OpenView, Arc<View>), Stopped> {
    let Prepared { view, layout, memory, .. } = prepared;
    let participant = &parts.participant;
    let failed = Stopped::NoMemory;
    let own = view
        .rank_of(participant.own)
        .ok_or_else(|| failed("this node is not in the view".into()))?;
    let capabilities = parts.fabric.capabilities();
    let present = OpenView::open(view.clone(), layout, own, memory, participant, capabilities);
    Ok((present.map_err(|error| failed(error.to_string()))?, Arc::new(view)))
}
