//! Two ends and the connection between them, compared with a model that knows only which blocks and
//! receives have been posted.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use tramontane_core::fabric::{BlockEvent, Channel, Token};
use tramontane_core::ids::{Rank, ViewId};

use super::message::{ChannelMessage, OfferedAddress};
use super::{
    Block, BlockOrder, Envelope, EventQueue, Exchange, MESSAGE_BYTES, MESSAGES_MAX, RECEIVES_MAX,
    Receive,
};

const CHANNELS_USED: u16 = 3;

/// A value that represents bytes that changed before they were written.
const CHANGED: u64 = u64::MAX;

/// A random step of one end.
#[derive(Clone, Copy, Debug)]
enum RandomStep {
    Receive {
        channel: u16,
        length: u32,
    },
    /// Sends only a block that is expected and fits, like a correct sender.
    Send {
        channel: u16,
        number: u32,
    },
    Close {
        channel: u16,
    },
    /// Passes a number of requests to the device, which may not have room for all of them.
    Post {
        most: u8,
    },
    /// The peer's device executes one request.
    Land,
    /// Everything that has landed is acknowledged.
    Acknowledge,
}

#[derive(Debug)]
enum ModelRequest {
    Write { channel: Channel, block: u64, place: OfferedAddress },
    Message([u8; MESSAGE_BYTES]),
}

/// One end of the connection.
struct ModelEnd {
    exchange: Exchange<u64>,
    events: EventQueue,
    closed: [bool; CHANNELS_USED as usize],
    /// Requests, by number, that have been passed to the device but have not landed.
    wire: VecDeque<ModelRequest>,
    posted: u64,
    landed: u64,
    /// The block at each address.
    memory: BTreeMap<u64, u64>,
    next_token: u64,
}

/// The history of one channel in one direction.
#[derive(Clone, Debug, Default)]
struct ChannelHistory {
    /// The token, number and length of each block that was sent.
    sent: Vec<(u64, u32, u32)>,
    /// The token and length of each receive; its token is also its address.
    awaited: Vec<(u64, u32)>,
    told_sent: usize,
    told_received: usize,
}

/// The two ends and their history: by sender, then by channel.
struct BlocksModel {
    ends: [ModelEnd; 2],
    ways: [[ChannelHistory; CHANNELS_USED as usize]; 2],
}

impl ModelEnd {
    fn new(peer: u16) -> Self {
        Self {
            exchange: Exchange::new(Rank(peer)),
            events: EventQueue::new(ViewId(1)),
            closed: [false; CHANNELS_USED as usize],
            wire: VecDeque::new(),
            posted: 0,
            landed: 0,
            memory: BTreeMap::new(),
            next_token: 1,
        }
    }

    fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }
}

impl BlocksModel {
    fn new() -> Self {
        Self { ends: [ModelEnd::new(1), ModelEnd::new(0)], ways: Default::default() }
    }

    fn step(&mut self, at: usize, step: RandomStep) {
        match step {
            RandomStep::Receive { channel, length } => self.receive(at, channel, length),
            RandomStep::Send { channel, number } => self.send(at, channel, number),
            RandomStep::Close { channel } => self.close(at, channel),
            RandomStep::Post { most } => {
                for _ in 0..most {
                    self.post(at);
                }
            }
            RandomStep::Land => self.land(at),
            RandomStep::Acknowledge => {
                let ModelEnd { exchange, events, landed, .. } = &mut self.ends[at];
                exchange.acknowledged(*landed, events);
            }
        }
        self.check(at);
    }

    fn receive(&mut self, at: usize, channel: u16, length: u32) {
        let end = &mut self.ends[at];
        if end.closed[usize::from(channel)] {
            return;
        }
        let token = end.token();
        let receive =
            Receive { _memory: token, address: token, key: 7, length, token: Token(token) };
        if end.exchange.receive(Channel(channel), receive, &mut end.events).is_ok() {
            self.ways[1 - at][usize::from(channel)].awaited.push((token, length));
        }
    }

    fn send(&mut self, at: usize, channel: u16, number: u32) {
        let (end, way) = (&mut self.ends[at], &mut self.ways[at][usize::from(channel)]);
        let Some((_, room)) = way.awaited.get(way.sent.len()).copied() else { return };
        if end.closed[usize::from(channel)] {
            return;
        }
        let (token, length) = (end.token(), room.min(number));
        let block = Block { memory: token, offset: 0, length, number, token: Token(token) };
        if end.exchange.send(Channel(channel), block, &mut end.events).is_ok() {
            way.sent.push((token, number, length));
        }
    }

    fn close(&mut self, at: usize, channel: u16) {
        let end = &mut self.ends[at];
        end.closed[usize::from(channel)] = true;
        end.exchange.close(Channel(channel), &mut end.events);
        end.events.forget(|way| way.channel == Channel(channel));
        // From now on, the device reads different bytes.
        for request in &mut end.wire {
            if let ModelRequest::Write { channel: on, block, .. } = request
                && *on == Channel(channel)
            {
                *block = CHANGED;
            }
        }
    }

    fn post(&mut self, at: usize) {
        let end = &mut self.ends[at];
        if let Some(envelope) = end.exchange.next_message() {
            end.posted += 1;
            end.wire.push_back(ModelRequest::Message(envelope.encode()));
        }
        if let Some(BlockOrder { memory, place, .. }) =
            end.exchange.next_write(end.posted).expect("it fits")
        {
            end.posted += 1;
            // A block's memory has the same name as its token. The model knows the channel.
            let on = self.ways[at]
                .iter()
                .position(|way| way.sent.iter().any(|(token, ..)| *token == memory));
            let channel = Channel(on.and_then(|on| u16::try_from(on).ok()).expect("it was sent"));
            end.wire.push_back(ModelRequest::Write { channel, block: memory, place });
        }
        let messages =
            end.wire.iter().filter(|request| matches!(request, ModelRequest::Message(_))).count();
        assert!(messages <= MESSAGES_MAX as usize, "a message without a receive");
    }

    fn land(&mut self, from: usize) {
        let Some(request) = self.ends[from].wire.pop_front() else { return };
        self.ends[from].landed += 1;
        let ModelEnd { exchange, events, closed, memory, .. } = &mut self.ends[1 - from];
        match request {
            ModelRequest::Write { block, place, .. } => {
                memory.insert(place.address, block);
            }
            ModelRequest::Message(bytes) => {
                let envelope = Envelope::decode(&bytes).expect("a message");
                let heard = exchange.hear(&envelope, |on| closed[usize::from(on.0)], events);
                assert_eq!(heard, Ok(()), "{envelope:?}");
            }
        }
        self.check(1 - from);
    }

    /// Compares the events of an end with the model.
    fn check(&mut self, at: usize) {
        let ModelEnd { events, exchange, .. } = &self.ends[at];
        assert_eq!(
            events.under_way(),
            exchange.under_way(),
            "room is kept for what is to come, and no more"
        );
        while let Some(event) = self.ends[at].events.next() {
            let (BlockEvent::Sent { way: on, .. } | BlockEvent::Received { way: on, .. }) = event;
            let channel = usize::from(on.channel.0);
            assert!(!self.ends[at].closed[channel], "{event:?} of a closed channel");
            match event {
                BlockEvent::Sent { token, .. } => {
                    let way = &mut self.ways[at][channel];
                    assert_eq!(token.0, way.sent[way.told_sent].0, "blocks are told in order");
                    way.told_sent += 1;
                }
                BlockEvent::Received { token, immediate, length, .. } => {
                    let way = &mut self.ways[1 - at][channel];
                    let (awaited, (sent, number, bytes)) =
                        (way.awaited[way.told_received].0, way.sent[way.told_received]);
                    assert_eq!((token.0, immediate, length), (awaited, number, bytes as usize));
                    assert_eq!(
                        self.ends[at].memory.get(&awaited),
                        Some(&sent),
                        "another block lies there"
                    );
                    way.told_received += 1;
                }
            }
        }
    }

    /// Carries everything until both ends are quiet.
    fn settle(&mut self) {
        for _ in 0..2000 {
            for at in [0, 1] {
                for step in
                    [RandomStep::Post { most: 1 }, RandomStep::Land, RandomStep::Acknowledge]
                {
                    self.step(at, step);
                }
            }
        }
    }

    fn check_end(&self) {
        for (at, end) in self.ends.iter().enumerate() {
            assert!(end.exchange.is_idle() && end.wire.is_empty(), "something is left");
            for channel in 0..CHANNELS_USED {
                let place = usize::from(channel);
                let (way, other) = (&self.ways[at][place], &self.ends[1 - at]);
                if end.closed[place] || other.closed[place] {
                    assert_eq!(
                        end.exchange.held(Channel(channel)),
                        0,
                        "memory of a closed channel is held"
                    );
                } else {
                    assert_eq!(
                        (way.told_sent, way.told_received),
                        (way.sent.len(), way.sent.len())
                    );
                }
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<(usize, RandomStep)>> {
    let channel = 0..CHANNELS_USED;
    let step = prop_oneof![
        6 => (channel.clone(), 0..100_u32)
            .prop_map(|(channel, length)| RandomStep::Receive { channel, length }),
        6 => (channel.clone(), any::<u32>())
            .prop_map(|(channel, number)| RandomStep::Send { channel, number }),
        1 => channel.prop_map(|channel| RandomStep::Close { channel }),
        8 => (1..4_u8).prop_map(|most| RandomStep::Post { most }),
        12 => Just(RandomStep::Land),
        4 => Just(RandomStep::Acknowledge),
    ];
    prop::collection::vec((0..2_usize, step), 0..400)
}

proptest! {
    #[test]
    fn blocks_match_the_model_on_every_channel(steps in steps()) {
        let mut model = BlocksModel::new();
        for (at, step) in steps {
            model.step(at, step);
        }
        model.settle();
        model.check_end();
    }

    #[test]
    fn arbitrary_messages_break_no_invariant(
        messages in prop::collection::vec(any_message(), 0..200),
    ) {
        let mut end = ModelEnd::new(1);
        for channel in 0..CHANNELS_USED {
            let receive = Receive { _memory: 0, address: 1, key: 2, length: 10, token: Token(3) };
            end.exchange.receive(Channel(channel), receive, &mut end.events).expect("the first");
        }
        end.closed[1] = true;
        end.exchange.close(Channel(1), &mut end.events);
        for (number, envelope) in (0_u64..).zip(messages) {
            while end.exchange.next_message().is_some() {}
            let _ = end.exchange.next_write(number);
            if end.exchange.hear(&envelope, |on| on == Channel(1), &mut end.events).is_err() {
                // The peer is lost.
                break;
            }
        }
        let received = std::iter::from_fn(|| end.events.next())
            .filter(|event| matches!(event, BlockEvent::Received { .. }));
        prop_assert!(received.count() < usize::from(CHANNELS_USED));
    }
}

#[test]
fn blocks_without_a_receive_wait() {
    let mut model = BlocksModel::new();
    let all = || (0..CHANNELS_USED).flat_map(|channel| [channel; RECEIVES_MAX]);
    for at in [0, 1] {
        for channel in all() {
            model.step(at, RandomStep::Receive { channel, length: 10 });
        }
        model.step(at, RandomStep::Post { most: 100 });
        assert_eq!(
            model.ends[at].wire.len(),
            MESSAGES_MAX as usize - 1,
            "the last is for a credit"
        );
    }
    for at in [0, 1] {
        all().for_each(|channel| model.step(at, RandomStep::Send { channel, number: 10 }));
    }
    model.settle();
    model.check_end();
    let sent: usize = model.ways.iter().flatten().map(|way| way.told_received).sum();
    assert_eq!(sent, 2 * all().count());
}

fn any_message() -> impl Strategy<Value = Envelope> {
    let serial = 0..3_u64;
    let message = prop_oneof![
        (serial.clone(), 0..20_u32).prop_map(|(serial, length)| ChannelMessage::Offer {
            serial,
            place: OfferedAddress { address: 0, key: 0, length }
        }),
        (serial.clone(), any::<u32>(), 0..20_u32).prop_map(|(serial, number, length)| {
            ChannelMessage::Written { serial, number, length }
        }),
        serial.prop_map(|serial| ChannelMessage::Asked { serial }),
        Just(ChannelMessage::Refused),
        Just(ChannelMessage::Over),
        Just(ChannelMessage::Credit),
    ];
    (0..4_u64, 0..1030_u16, message).prop_map(|(taken, channel, message)| Envelope {
        taken,
        channel: Channel(if channel < 1000 { channel % CHANNELS_USED } else { channel }),
        message,
    })
}
