//! Defaults for the fabrics of these tests, which leave most calls of a fabric unimplemented.

use tramontane_core::fabric::{Capabilities, ErrorKind, Event, Write};
use tramontane_core::ids::Rank;

/// The calls that a test's fabric may override. By default, they do nothing.
pub trait Carries {
    fn limits(&self) -> Capabilities;
    fn is_ready(&self, _peer: Rank) -> bool {
        true
    }
    fn cut_off(&mut self, _peer: Rank) {}
    fn carry(&mut self, _to: Rank, _writes: &[Write]) -> Result<(), ErrorKind> {
        Ok(())
    }
    fn next_event(&mut self) -> Option<Event> {
        None
    }
    fn barrier(&self) {}
}

/// Implements `Fabric` for a type that [`Carries`].
macro_rules! fabric {
    ($type:ty) => {
        impl tramontane_core::fabric::Fabric for $type {
            type Error = tramontane_core::fabric::ErrorKind;
            fn capabilities(&self) -> tramontane_core::fabric::Capabilities {
                $crate::common::Carries::limits(self)
            }
            fn open(
                &mut self,
                _: tramontane_core::ids::ViewId,
                _: &tramontane_core::fabric::ViewMemory<'_>,
            ) -> Result<(), Self::Error> {
                Ok(())
            }
            fn ready(
                &self,
                _: tramontane_core::ids::ViewId,
                peer: tramontane_core::ids::Rank,
            ) -> bool {
                $crate::common::Carries::is_ready(self, peer)
            }
            fn cut(&mut self, _: tramontane_core::ids::ViewId, peer: tramontane_core::ids::Rank) {
                $crate::common::Carries::cut_off(self, peer);
            }
            fn retire(&mut self, _: tramontane_core::ids::ViewId) -> bool {
                true
            }
            fn post(
                &mut self,
                _: tramontane_core::ids::ViewId,
                to: tramontane_core::ids::Rank,
                writes: &[tramontane_core::fabric::Write],
                _: Option<tramontane_core::fabric::Token>,
            ) -> Result<(), Self::Error> {
                assert!(!writes.is_empty(), "a post of nothing");
                $crate::common::Carries::carry(self, to, writes)
            }
            fn poll(&mut self) -> Option<tramontane_core::fabric::Event> {
                $crate::common::Carries::next_event(self)
            }
            fn wake(&mut self, _: tramontane_core::ids::ViewId, _: tramontane_core::ids::Rank) {}
            fn arm(&mut self) -> bool {
                true
            }
            fn disarm(&mut self) {}
            fn observe_barrier(&self) {
                $crate::common::Carries::barrier(self);
            }
        }
    };
}
pub(crate) use fabric;
