//! Measures the cost of a key. Run it by hand: `cargo test --release -p tramontane-control --test
//! key_throughput -- --ignored --nocapture`

use std::time::{Duration, Instant};

use crate::support::{LONG, go, identity, key, listener, server};
use tramontane_control::{Cipher, Purpose, RECORD_CONTENT_MAX, RECORD_HEADER, RECORD_OVERHEAD};

/// The duration of each measurement.
const WINDOW: Duration = Duration::from_secs(2);

/// Returns the ciphers of both ends of a connection.
fn ciphers() -> [Cipher; 2] {
    let (server, clients) = server(listener(), key(1));
    let here =
        go(server.address(), identity(11), key(1).as_ref(), Purpose::Peer).expect("let in").session;
    let there = clients.recv_timeout(LONG).expect("handed over").session;
    [here, there].map(|session| {
        session.into_connection().and_then(|it| it.cipher).expect("over TCP, with a key")
    })
}

#[test]
#[ignore = "measures"]
#[allow(clippy::as_conversions, clippy::cast_precision_loss, reason = "for people to read")]
fn records_are_sealed_and_opened() {
    for content_bytes in [64, 1024, 16_384, RECORD_CONTENT_MAX] {
        let [mut here, mut there] = ciphers();
        let mut record = vec![7; content_bytes + RECORD_OVERHEAD];
        let (mut sealing, mut opening, mut count) = (Duration::ZERO, Duration::ZERO, 0_u32);
        while sealing + opening < WINDOW {
            let started = Instant::now();
            here.seal(&mut record).expect("it fits");
            let sealed = Instant::now();
            there.open(&mut record[RECORD_HEADER..]).expect("whole");
            (sealing, opening, count) =
                (sealing + (sealed - started), opening + sealed.elapsed(), count + 1);
        }
        let rate =
            |time: Duration| f64::from(count) * content_bytes as f64 / time.as_secs_f64() / 1e6;
        let (sealed, opened) = (rate(sealing), rate(opening));
        println!(
            "{content_bytes:6} B a record: {sealed:7.1} MB/s sealed, {opened:7.1} MB/s opened"
        );
    }
}
