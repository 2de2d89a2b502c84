//! The memory that an overlay requires from its processes.

use tramontane_core::ids::GroupId;
use tramontane_core::tram::{
    Group, Limits, LinkId, LinkRole, Overlay, ReplicaBytes, ReplicaLinks, Shape,
};

const LIMITS: Limits =
    Limits { clients: 3, log_entries: 16, client_window: 4, parent_window: 5, payload_max: 100 };

/// Returns a root of three, its two children, and a group below the first child.
fn overlay(limits: Limits) -> Overlay {
    let of = |parent: Option<u16>, replicas| Group { parent: parent.map(GroupId), replicas };
    let groups = [of(None, 3), of(Some(0), 2), of(Some(0), 4), of(Some(1), 1)];
    Overlay::new(&groups, limits).expect("a tree")
}

/// Sums both rows of each link of a replica one by one, except for its link to itself.
fn rows_one_by_one(overlay: &Overlay, group: GroupId) -> usize {
    let links = ReplicaLinks::of(overlay, group);
    let own = Shape::of(overlay, group);
    let children: Vec<GroupId> = overlay.children(group).collect();
    let of_link = |link: u16| match links.role(LinkId(link)).expect("a link") {
        LinkRole::Peer(_) => 2 * own.peer_row_bytes(),
        LinkRole::Parent(_) => own.parent_row_bytes() + own.child_row_bytes(),
        LinkRole::Child { child, .. } => {
            let below = Shape::of(overlay, children[usize::from(child)]);
            below.parent_row_bytes() + below.child_row_bytes()
        }
        LinkRole::Client(_) => {
            own.client_row_bytes() + own.reply_row_bytes(overlay.limits().client_window)
        }
    };
    let all: usize = (0..u16::try_from(links.len()).expect("few")).map(of_link).sum();
    all - 2 * own.peer_row_bytes()
}

/// TRM-6.1.
#[test]
fn replica_memory_covers_exactly_its_links() {
    let overlay = overlay(LIMITS);
    for group in overlay.all().iter() {
        let bytes = ReplicaBytes::of(&overlay, group);
        assert_eq!(bytes.rows, rows_one_by_one(&overlay, group) as u64, "group {group}");
        assert_eq!(bytes.log, Shape::of(&overlay, group).log_bytes() as u64);
    }
}

/// TRM-6.1: a ring has a slot for each message of its window, and a log has a payload for each
/// entry; both begin on cache lines.
#[test]
fn one_more_slot_adds_a_header_and_payload() {
    let root = GroupId(0);
    let shape = |limits| Shape::of(&overlay(limits), root);
    let one = shape(LIMITS);
    assert_eq!((one.entries(), one.payload_max()), (16, 100));
    let of_window = shape(Limits { client_window: 5, ..LIMITS });
    assert_eq!(of_window.client_row_bytes() - one.client_row_bytes(), 64 + 128);
    let of_parent = shape(Limits { parent_window: 6, ..LIMITS });
    assert_eq!(of_parent.parent_row_bytes() - one.parent_row_bytes(), 64 + 128);
    let of_log = shape(Limits { log_entries: 17, ..LIMITS });
    assert!(of_log.log_bytes() - one.log_bytes() >= 64 + 128);
    for bytes in [one.log_bytes(), one.client_row_bytes(), one.reply_row_bytes(9)] {
        assert_eq!(bytes % 64, 0);
    }
}

/// TRM-6.1: a replica's row has a length and whole cells for each answer of the window.
#[test]
fn answers_add_whole_cells_to_reply_rows() {
    let plain = overlay(LIMITS);
    let with_answers = plain.clone().with_answers(20);
    assert_eq!((plain.answer_max(), with_answers.answer_max()), (0, 20));
    assert_ne!(plain.digest(), with_answers.digest());
    let bytes = |overlay: &Overlay| Shape::of(overlay, GroupId(0)).reply_row_bytes(4);
    assert_eq!(bytes(&with_answers) - bytes(&plain), 4 * (8 + 24));
    for group in with_answers.all().iter() {
        let rows = ReplicaBytes::of(&with_answers, group).rows;
        assert_eq!(rows, rows_one_by_one(&with_answers, group) as u64);
    }
}

/// If this fails, the layout of the rows that processes exchange has changed: increase `FORMAT` in
/// `core-nostd/src/tram/overlay.rs`, and put the new numbers here. Otherwise two different builds
/// would connect and misread each other's rows.
#[cfg(target_endian = "little")]
#[test]
fn row_layout_matches_the_format_version() {
    let overlay = overlay(LIMITS);
    let root = Shape::of(&overlay, GroupId(0));
    let sizes = [
        root.log_bytes(),
        root.peer_row_bytes(),
        root.client_row_bytes(),
        root.reply_row_bytes(4),
        root.parent_row_bytes(),
        root.child_row_bytes(),
    ];
    assert_eq!((sizes, overlay.digest()), ([37952, 192, 832, 128, 1024, 64], 0x9008fb7d790078a9));
}
