//! The module `health`, and a pair in which one member continues without the other.

use core::hint::black_box;

use super::{debug, display};
use crate::entries;
use crate::fabric::{Local, Way};
use tramontane_core::health::{self, *};
use tramontane_core::ids::{NodeId, Rank, Time, ViewId};
use tramontane_core::layout::{Delivery, Group, HeaderCell, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Impossible;
use tramontane_core::node::AloneError;

pub fn call() {
    display(black_box(HealthKind::Restarted));
    black_box(black_box(HealthKind::Restarted).code());
    debug(HealthEvent::of_refusal(black_box((Rank(1), Impossible::Round)), black_box(Time(3))));
    debug(health::decide(
        black_box(Policy::Witness),
        black_box(Rank(0)),
        black_box(Discretes::default()),
    ));
    display(black_box(AloneError::NotAPair));
    display(black_box(HealthError::NoHeader));
    monitor();
}

fn monitor() {
    static LINES: [Line; 32] = [const { Line::new() }; 32];
    let members = [NodeId(7), NodeId(9)];
    let ranks = [Rank(0), Rank(1)];
    let subgroups = [Subgroup {
        members: black_box(&ranks),
        senders: black_box(&ranks),
        window: black_box(4),
        message_max: black_box(50),
        delivery: black_box(Delivery::Ordered),
    }];
    let Ok(layout) = Layout::new(black_box(Group { members: &members, subgroups: &subgroups }))
    else {
        return;
    };
    let layout = black_box(layout.with_health());
    black_box((layout.has_health(), black_box(HeaderCell::Heartbeat).offset()));
    let rows = [Row::from_lines(&LINES), Row::from_lines(&LINES)];
    let row = RowWriter::from_lines(black_box(&LINES));
    let mut peers = [PeerHealth::default(); 2];
    let options =
        black_box(HealthOptions { incarnation: 3, interval_ns: 10, timeout_ns: Some(100) });
    let opened = Monitor::open(
        ViewId(black_box(0)),
        &layout,
        black_box(Rank(0)),
        (&rows, row),
        &mut peers,
        options,
    );
    let mut fabric = Local::new(Way::Shared);
    match opened {
        Ok(mut monitor) => {
            let mut last = None;
            for now in [5, 500] {
                let now = black_box(Time(now));
                entries::monitor_step(|| {
                    monitor.step(now, &mut fabric, |event| last = Some(event));
                });
            }
            debug(last);
            monitor.stop_because_of(black_box(Rank(1)));
            black_box(monitor.is_over(black_box(Rank(1))));
        }
        Err(error) => display(error),
    }
}
