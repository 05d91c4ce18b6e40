//! A connection for data between two processes, as a rendezvous leaves it.

use std::net::TcpStream;

use super::seal::Seal;

/// A connection to another process, for data. Its bytes are sealed with the keys of its handshake, or travel as they are.
#[derive(Debug)]
pub struct Stream {
    tcp: TcpStream,
    seal: Option<Seal>,
}

impl Stream {
    pub(crate) fn new(tcp: TcpStream, seal: Option<Seal>) -> Self {
        Stream { tcp, seal }
    }

    /// The connection itself.
    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Whether its bytes are sealed.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// The connection itself, and the seal of its bytes.
    pub fn into_parts(self) -> (TcpStream, Option<Seal>) {
        (self.tcp, self.seal)
    }
}

/// A connection that is not sealed.
impl From<TcpStream> for Stream {
    fn from(tcp: TcpStream) -> Self {
        Stream::new(tcp, None)
    }
}
