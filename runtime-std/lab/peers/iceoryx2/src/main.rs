//! A publisher or a subscriber of iceoryx2, under the load of `tramontane-lab bench`. Every byte is
//! written in place and read in place. The publisher waits for subscribers whose buffer is full.
//!
//! Usage: tramontane-peer-iceoryx2 SERVICE SUBSCRIBERS RANK BYTES MESSAGES INTERVAL_US
//!
//! Rank 0 publishes; the others subscribe, and print the messages per second. With an interval, the
//! publisher waits before each message, and the subscribers print the latency of each message in
//! nanoseconds. The processes spin, as those of the bench do. They end when their input ends.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::thread::yield_now;
use std::time::{Duration, Instant, SystemTime};

use iceoryx2::port::backpressure_strategy::BackpressureStrategy;
use iceoryx2::prelude::{
    AllocationStrategy, LogLevel, NodeBuilder, PortFactory as _, ipc, set_log_level,
};

/// The capacity of a subscriber's buffer in messages, which is the number of our slots per sender.
const WINDOW: usize = 100;

/// Each byte of a greeting. No other message consists only of such bytes.
const GREETING: u8 = 0x80;

/// Time limit for the subscribers to come.
const LIMIT: Duration = Duration::from_secs(20);

/// Returns the time on a clock that all processes share, in nanoseconds.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as u64)
}

/// Reads every byte, as the bench does.
fn read(payload: &[u8]) -> u64 {
    let (words, rest) = payload.as_chunks::<8>();
    let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [service, numbers @ ..] = &arguments[..] else {
        return Err("SERVICE SUBSCRIBERS RANK BYTES MESSAGES INTERVAL_US".into());
    };
    let numbers = numbers.iter().map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?;
    let [subscribers, rank, bytes, messages, interval_us] = numbers[..] else {
        return Err("SERVICE SUBSCRIBERS RANK BYTES MESSAGES INTERVAL_US".into());
    };
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = node
        .service_builder(&service.as_str().try_into()?)
        .publish_subscribe::<[u8]>()
        .enable_safe_overflow(false)
        .subscriber_max_buffer_size(WINDOW)
        .max_publishers(1)
        .max_subscribers(subscribers)
        .max_nodes(subscribers + 1)
        .open_or_create()?;
    if rank == 0 {
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(bytes)
            .allocation_strategy(AllocationStrategy::Static)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?;
        let begun = Instant::now();
        while service.dynamic_config().number_of_subscribers() < subscribers {
            if begun.elapsed() > LIMIT {
                return Err(format!("the subscribers did not come within {LIMIT:?}").into());
            }
            yield_now();
        }
        // A sample is lost if its buffer is full and the subscriber has not connected to it. The
        // buffers are therefore filled with greetings until one more reaches all.
        let mut greetings = 0;
        loop {
            let greeting = publisher.loan_slice_uninit(bytes)?.write_from_fn(|_| GREETING);
            greetings += 1;
            if greeting.send()? == subscribers && greetings > WINDOW {
                break;
            }
            yield_now();
        }
        let mut next_ns = now_ns();
        for number in 0..messages {
            while interval_us > 0 && now_ns() < next_ns {}
            let mut sample =
                publisher.loan_slice_uninit(bytes)?.write_from_fn(|_| number as u8 & !GREETING);
            if interval_us > 0 {
                let now = now_ns();
                next_ns = now + interval_us as u64 * 1_000;
                sample.payload_mut()[..8].copy_from_slice(&now.to_ne_bytes());
            }
            sample.send()?;
        }
        std::io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    let subscriber = service.subscriber_builder().buffer_size(WINDOW).create()?;
    let (mut latencies, mut checksum, mut begun) = (Vec::with_capacity(messages), 0_u64, None);
    let (mut received, mut idle) = (0, 0_u32);
    while received < messages {
        let Some(sample) = subscriber.receive()? else {
            // If there are more processes than processors, the publisher may wait for this one.
            idle += 1;
            if idle.is_multiple_of(64) {
                yield_now();
            }
            continue;
        };
        if received == 0 && sample.payload().iter().all(|byte| *byte == GREETING) {
            continue;
        }
        if interval_us > 0 {
            let sent = sample.payload().first_chunk().map_or(0, |raw| u64::from_ne_bytes(*raw));
            latencies.push(now_ns().saturating_sub(sent));
        }
        checksum = checksum.wrapping_add(read(sample.payload()));
        begun.get_or_insert_with(Instant::now);
        received += 1;
    }
    let elapsed = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    // The sum is used, so that the reads are not optimised away.
    std::hint::black_box(checksum);
    let mut output = String::new();
    if interval_us == 0 {
        output = format!("{:.1}\n", messages as f64 / elapsed.as_secs_f64());
    }
    for latency_ns in latencies {
        output += &format!("{latency_ns}\n");
    }
    std::io::stdout().write_all(output.as_bytes())?;
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
