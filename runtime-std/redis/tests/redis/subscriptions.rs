//! PUBLISH and SUBSCRIBE.

use crate::nodes::TestGroup;

#[test]
fn subscribers_at_all_nodes_receive_messages_in_order() {
    let group = TestGroup::new("");
    let nodes = group.start_all(&[0, 1, 2]);
    let [a, b] = &mut [nodes[0].client(), nodes[1].client()];
    a.check("SUBSCRIBE news => [\"subscribe\" \"news\" 1]");
    b.check("PSUBSCRIBE n* => [\"psubscribe\" \"n*\" 1]");
    let mut publishers = [nodes[0].client(), nodes[2].client()];
    for turn in 0..20 {
        publishers[turn % 2].ask(&format!("PUBLISH news {turn}"));
    }
    for turn in 0..20 {
        assert_eq!(a.read(), format!("[\"message\" \"news\" \"{turn}\"]"));
        assert_eq!(b.read(), format!("[\"pmessage\" \"n*\" \"news\" \"{turn}\"]"));
    }
    assert_eq!(publishers[0].ask("PUBSUB CHANNELS"), "[\"news\"]");
    assert_eq!(publishers[0].ask("PUBLISH other x"), "0");
    assert_eq!(publishers[0].ask("PUBLISH news y"), "1", "subscribers at this node");
    a.read();
    let refused = "(error) ERR Can't execute 'get': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / \
                   QUIT / RESET are allowed in this context";
    a.check(&format!("GET k => {refused}\nPING => [\"pong\" \"\"]"));
    a.check("UNSUBSCRIBE => [\"unsubscribe\" \"news\" 0]\nGET k => nil");
    // A subscription ends with its connection.
    drop(nodes[0].client().ask("SUBSCRIBE gone"));
    crate::nodes::await_that("the channel has gone", || {
        publishers[0].ask("PUBSUB CHANNELS") == "[]"
    });
}
