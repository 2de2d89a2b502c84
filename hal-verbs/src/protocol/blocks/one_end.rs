//! Tests of a single end: messages that a peer may not send, and the turns of channels.

use tramontane_core::fabric::{Channel, LossCause, Token};
use tramontane_core::ids::{Rank, ViewId};

use super::exchange::WRITES_MAX;
use super::message::{ChannelMessage, OfferedAddress};
use super::{Block, CHANNELS, Envelope, EventQueue, Exchange, RECEIVES_MAX, Receive};

const PLACE: OfferedAddress = OfferedAddress { address: 64, key: 7, length: 100 };

fn receive() -> Receive<()> {
    Receive { _memory: (), address: 64, key: 7, length: 100, token: Token(1) }
}

fn block(number: u32) -> Block<()> {
    Block { memory: (), offset: 0, length: 10, number, token: Token(2) }
}

/// Returns an end that has posted a receive on channel 1 and offered it to the peer.
fn end() -> (Exchange<()>, EventQueue) {
    let (mut exchange, mut events) = (Exchange::new(Rank(1)), EventQueue::new(ViewId(1)));
    exchange.receive(Channel(1), receive(), &mut events).expect("the first");
    let offer = exchange.next_message().expect("an offer");
    assert_eq!(offer.message, ChannelMessage::Offer { serial: 0, place: PLACE });
    (exchange, events)
}

fn hear(
    exchange: &mut Exchange<()>,
    events: &mut EventQueue,
    (channel, message): (u16, ChannelMessage),
) -> Result<(), LossCause> {
    exchange.hear(&Envelope { taken: 0, channel: Channel(channel), message }, |_| false, events)
}

#[test]
fn invalid_message_loses_its_sender() {
    let cases: [(&[(u16, ChannelMessage)], LossCause); 9] = [
        (&[(CHANNELS, ChannelMessage::Over)], LossCause::Misbehaved),
        (&[(1, ChannelMessage::Offer { serial: 1, place: PLACE })], LossCause::Misbehaved),
        (
            &[(1, ChannelMessage::Written { serial: 1, number: 0, length: 5 })],
            LossCause::Misbehaved,
        ),
        (
            &[(1, ChannelMessage::Written { serial: 0, number: 0, length: 101 })],
            LossCause::Misbehaved,
        ),
        (
            &[(2, ChannelMessage::Written { serial: 0, number: 0, length: 0 })],
            LossCause::Misbehaved,
        ),
        (&[(1, ChannelMessage::Over), (1, ChannelMessage::Over)], LossCause::Misbehaved),
        (
            &[
                (1, ChannelMessage::Over),
                (1, ChannelMessage::Written { serial: 0, number: 0, length: 5 }),
            ],
            LossCause::Misbehaved,
        ),
        (
            &[(1, ChannelMessage::Over), (1, ChannelMessage::Offer { serial: 0, place: PLACE })],
            LossCause::Misbehaved,
        ),
        (&[(1, ChannelMessage::Refused)], LossCause::Unreachable),
    ];
    for (messages, cause) in cases {
        let (mut exchange, mut events) = end();
        let (last, before) = messages.split_last().expect("some");
        for message in before {
            assert_eq!(hear(&mut exchange, &mut events, *message), Ok(()), "{message:?}");
        }
        assert_eq!(hear(&mut exchange, &mut events, *last), Err(cause), "{messages:?}");
    }
    let (mut exchange, mut events) = end();
    let envelope = Envelope { taken: 2, channel: Channel(0), message: ChannelMessage::Credit };
    let heard = exchange.hear(&envelope, |_| false, &mut events);
    assert_eq!(heard, Err(LossCause::Misbehaved), "it took more than was sent");
}

#[test]
fn excess_offers_lose_their_sender() {
    let (mut exchange, mut events) = end();
    for serial in 0..RECEIVES_MAX as u64 {
        assert_eq!(
            hear(&mut exchange, &mut events, (1, ChannelMessage::Offer { serial, place: PLACE })),
            Ok(())
        );
    }
    let one_more = (1, ChannelMessage::Offer { serial: RECEIVES_MAX as u64, place: PLACE });
    assert_eq!(hear(&mut exchange, &mut events, one_more), Err(LossCause::Misbehaved));
}

#[test]
fn channels_take_turns_after_each_block() {
    let (mut exchange, mut events) = end();
    for channel in [1, 2, 3] {
        for serial in 0..8 {
            let offer = (channel, ChannelMessage::Offer { serial, place: PLACE });
            assert_eq!(hear(&mut exchange, &mut events, offer), Ok(()));
        }
        for number in 0..8 {
            exchange.send(Channel(channel), block(number), &mut events).expect("room");
        }
    }
    let mut order = Vec::new();
    for request in 0..24 {
        exchange.next_write(request).expect("it fits").expect("one more");
        order.push(exchange.last_begun().0);
        exchange.acknowledged(request + 1, &mut events);
    }
    assert_eq!(order, [1, 2, 3].repeat(8));
}

#[test]
fn writes_in_flight_are_bounded_and_oversized_refused() {
    let (mut exchange, mut events) = end();
    for serial in 0..8 {
        let offer = (1, ChannelMessage::Offer { serial, place: PLACE });
        assert_eq!(hear(&mut exchange, &mut events, offer), Ok(()));
        exchange.send(Channel(1), block(0), &mut events).expect("room");
    }
    let posted =
        (0..8).filter(|request| exchange.next_write(*request).expect("it fits").is_some()).count();
    assert_eq!(posted, WRITES_MAX);
    let (mut exchange, mut events) = end();
    assert_eq!(
        hear(&mut exchange, &mut events, (2, ChannelMessage::Offer { serial: 0, place: PLACE })),
        Ok(())
    );
    exchange.send(Channel(2), Block { length: 101, ..block(0) }, &mut events).expect("room");
    assert_eq!(exchange.next_write(0).err(), Some(LossCause::Unreachable));
}
