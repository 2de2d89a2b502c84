//! The source of a connection, to which limits apply.

use std::net::IpAddr;

use xxhash_rust::xxh3::xxh3_64;

use super::stream::Stream;

/// The source of a connection, as a 63-bit number. It identifies a host by its address, or by its
/// network for IPv6. Over a Unix socket, it identifies a user of this machine. Zero if the source
/// is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source(pub u64);

impl Source {
    pub(super) fn of(stream: &Stream) -> Self {
        match stream {
            Stream::Tcp(stream) => stream.peer_addr().map_or_else(
                |_| Self::default(),
                |address| Self::of_host(address.ip().to_canonical()),
            ),
            Stream::Unix(stream) => {
                let known = rustix::net::sockopt::socket_peercred(stream);
                known.map_or_else(
                    |_| Self::default(),
                    |peer| Self::hash(&peer.uid.as_raw().to_le_bytes()),
                )
            }
        }
    }

    fn of_host(host: IpAddr) -> Self {
        match host {
            IpAddr::V4(host) => Self::hash(&host.octets()),
            // A host may use any address of its network.
            IpAddr::V6(host) => {
                let [a, b, c, d, ..] = host.segments();
                Self::hash(&[a, b, c, d].map(u16::to_le_bytes).concat())
            }
        }
    }

    fn hash(bytes: &[u8]) -> Self {
        Self(xxh3_64(bytes) >> 1)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn connection_source_is_a_host_or_user() {
        let host = |text: &str| Source::of_host(text.parse().expect("an address"));
        assert_eq!(host("10.9.0.1"), host("10.9.0.1"));
        assert_ne!(host("10.9.0.1"), host("10.9.0.2"));
        assert_eq!(host("fd00:1:2:3::1"), host("fd00:1:2:3:4::9"));
        assert_ne!(host("fd00:1:2:3::1"), host("fd00:1:2:4::1"));
        let (one, other) = UnixStream::pair().expect("sockets");
        let user = Source::of(&Stream::Unix(one));
        assert_eq!(user, Source::of(&Stream::Unix(other)));
        assert_ne!(user, Source::default());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let _client = TcpStream::connect(to).expect("it listens");
        let (accepted, _) = listener.accept().expect("it came");
        assert_eq!(Source::of(&Stream::Tcp(accepted)), host("127.0.0.1"));
    }
}
