//! What the kernel takes for each byte of a block that goes through a connection of the loopback.
//!
//! One thread sends a piece, another takes it on another processor, and neither works while the
//! other does. Both go through memories as large as a large message, which no processor's own cache
//! holds.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::time::Instant;

use super::pinned::Work;
use super::{pinned, time_ns};
use crate::error::BenchError;
use crate::experiment::JOIN_LIMIT;
use crate::spread::median;

/// Bytes of a piece: a block, as groups over TCP have it.
const PIECE_BYTES: usize = 128 << 10;

/// Bytes of the sender's memory, and of the receiver's.
const MEMORY_BYTES: usize = 16 << 20;

/// How often each goes through its memory; the first time finds the pages, and the connection finds
/// how much it may have under way.
const TURNS: usize = 5;

/// Times of one byte, in ns.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Streamed {
    pub(in super::super) send_ns: f64,
    pub(in super::super) receive_ns: f64,
}

/// Sends blocks through a connection.
pub(in super::super) fn streamed() -> Result<Streamed, BenchError> {
    let (mut from, mut to) = connection()?;
    let turn = &Barrier::new(2);
    let calls: [Work<'_, f64>; 2] = [
        Box::new(move || {
            let memory = vec![1_u8; MEMORY_BYTES];
            let mut times = Vec::new();
            for piece in pieces() {
                times.push(time_ns(|| send(&mut from, &memory[piece..piece + PIECE_BYTES])));
                turn.wait();
                turn.wait();
            }
            byte_ns(times)
        }),
        Box::new(move || {
            let mut memory = vec![0_u8; MEMORY_BYTES];
            let mut times = Vec::new();
            for piece in pieces() {
                turn.wait();
                times.push(time_ns(|| take(&mut to, &mut memory[piece..piece + PIECE_BYTES])));
                turn.wait();
            }
            byte_ns(times)
        }),
    ];
    let [send_ns, receive_ns] = pinned::together([0, 1], calls)?;
    Ok(Streamed { send_ns, receive_ns })
}

/// Where each piece begins.
fn pieces() -> impl Iterator<Item = usize> {
    (0..TURNS).flat_map(|_| (0..MEMORY_BYTES).step_by(PIECE_BYTES))
}

/// The median of all but the first turn, a byte.
fn byte_ns(times: Vec<(f64, std::io::Result<()>)>) -> Result<f64, BenchError> {
    let times = times.into_iter().map(|(took_ns, result)| result.map(|()| took_ns));
    let times = times.collect::<std::io::Result<Vec<f64>>>()?;
    Ok(median(&times[MEMORY_BYTES / PIECE_BYTES..]) / PIECE_BYTES as f64)
}

fn connection() -> Result<(TcpStream, TcpStream), BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let from = TcpStream::connect(listener.local_addr()?)?;
    let (to, _) = listener.accept()?;
    for end in [&from, &to] {
        end.set_nodelay(true)?;
        end.set_nonblocking(true)?;
    }
    Ok((from, to))
}

fn send(stream: &mut TcpStream, mut piece: &[u8]) -> std::io::Result<()> {
    until_whole(|| {
        let sent = stream.write(piece)?;
        piece = &piece[sent..];
        Ok(piece.is_empty())
    })
}

fn take(stream: &mut TcpStream, mut piece: &mut [u8]) -> std::io::Result<()> {
    until_whole(|| {
        let taken = stream.read(piece)?;
        piece = &mut std::mem::take(&mut piece)[taken..];
        Ok(piece.is_empty())
    })
}

/// Calls again while the connection has no room or nothing to give.
fn until_whole(mut call: impl FnMut() -> std::io::Result<bool>) -> std::io::Result<()> {
    let begun = Instant::now();
    loop {
        match call() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if begun.elapsed() > JOIN_LIMIT {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_through_a_connection_take_their_time_at_both_ends() {
        let Streamed { send_ns, receive_ns } = streamed().expect("it runs");
        assert!(send_ns > 0.0 && receive_ns > 0.0, "{send_ns} {receive_ns}");
    }

    #[test]
    fn what_comes_is_what_was_sent() {
        let (mut from, mut to) = connection().expect("a connection");
        let sent: Vec<u8> = (0..4000_u32).map(|index| index as u8).collect();
        let mut taken = vec![0; 4000];
        send(&mut from, &sent).expect("sent");
        take(&mut to, &mut taken).expect("taken");
        assert_eq!(sent, taken);
    }
}
