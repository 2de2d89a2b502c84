//! Values of the core's public types that an image logs with `defmt`. A host prints the same values
//! with `Debug` (`examples/said.rs`). A decoded log is therefore compared with the output of
//! another program, rather than with an earlier output of its own.

/// Passes values of public types to `$say`, one at a time.
#[macro_export]
macro_rules! each_value {
    ($say:ident) => {{
        use tramontane_core::fabric::{
            Capabilities, ErrorKind, Event, Kind, LossCause, Promises, Token, Write,
        };
        use tramontane_core::health::{HealthKind, Policy};
        use tramontane_core::ids::{
            Frontier, NodeId, Position, Rank, Round, SenderRank, Slot, SubgroupId, Time, ViewId,
        };
        use tramontane_core::layout::{
            ByteOrder, ControlCell, Delivery, DigestMismatch, Group, Layout, LayoutError, LineSize,
            Subgroup,
        };
        use tramontane_core::multicast::Impossible;
        use tramontane_core::node::{Frontiers, OpenError, StepError};
        use tramontane_core::smc::{ReserveError, RingCursor, SlotCounter};
        $say!(NodeId(u32::MAX));
        $say!(Rank(7));
        $say!(ViewId(1));
        $say!(Frontier(u64::MAX));
        $say!(Slot(3));
        $say!(Time(1_000_000_007));
        $say!(SenderRank(2));
        $say!(SlotCounter::Message(Round(12)));
        $say!(SlotCounter::UsedBelow(Round(0)));
        $say!(RingCursor { position: Position(9), slot: Slot(1) });
        $say!(ReserveError::TooLarge { length: 41, limit: 40 });
        $say!(ReserveError::Full);
        $say!(Frontiers { received: Frontier(5), delivered: Frontier(4) });
        $say!(Event::PeerLost { view: ViewId(3), peer: Rank(1), cause: LossCause::Misbehaved });
        $say!(Event::Completed(Token(77)));
        $say!(Event::Woken);
        $say!(ErrorKind::QueueFull);
        $say!(Promises::empty());
        $say!(Capabilities {
            promises: Promises::all(),
            writes_max: 4,
            write_bytes_max: 4096,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        });
        $say!(Write::of_row(64, 8, Kind::Guard));
        $say!(LayoutError::BadLoggedSubgroup);
        $say!(DigestMismatch::ByteOrderAndLineSize);
        $say!(ByteOrder::Little);
        $say!(LineSize::Bytes128);
        $say!(ControlCell::Received);
        $say!(Delivery::Ordered);
        $say!(Impossible::SlotChanged);
        $say!(OpenError::NoGuard);
        $say!(StepError::OutOfRow);
        $say!(HealthKind::Restarted);
        $say!(Policy::Survivor(Rank(1)));
        let members = [NodeId(4), NodeId(5)];
        let ranks = [Rank(0), Rank(1)];
        let subgroup = Subgroup {
            members: &ranks,
            senders: &ranks,
            window: 8,
            message_max: 100,
            delivery: Delivery::Ordered,
        };
        $say!(subgroup);
        if let Ok(layout) = Layout::new(Group { members: &members, subgroups: &[subgroup] }) {
            $say!(layout.ring(Rank(1), SubgroupId(0)));
            $say!(layout.state_sizes(Rank(0)));
            $say!(layout.step_bounds(Rank(0), 4));
        }
    }};
}

/// Logs each value.
#[cfg(feature = "defmt")]
pub fn say() {
    macro_rules! say {
        ($value:expr) => {
            defmt::println!("{}", $value)
        };
    }
    each_value!(say);
}
