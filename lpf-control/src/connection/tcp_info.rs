//! What the system knows of a connection.

use std::time::Duration;

use mio::net::TcpStream;

/// The state of a connection at the time of the question.
#[derive(Debug)]
pub struct TcpInfo {
    /// Whether a byte that was sent is not acknowledged. The other host acknowledges bytes even while its program is
    /// stopped. So if this lasts, nothing gets through.
    pub is_unanswered: bool,
    /// The time since the last acknowledgement arrived.
    pub silent: Duration,
    /// The number of retransmissions since.
    pub again: u8,
    /// The time after which unacknowledged bytes are sent again.
    pub time_out: Duration,
}

impl TcpInfo {
    /// Asks the system; `None` if it does not answer.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn of(stream: &TcpStream) -> Option<TcpInfo> {
        use std::os::fd::AsRawFd;
        // SAFETY: all zero is a valid value of its numbers.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&info) as libc::socklen_t;
        // SAFETY: `info` has room for `length` bytes, and both live through the call.
        let asked = unsafe {
            let room = (&raw mut info).cast();
            let descriptor = stream.as_raw_fd();
            libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, room, &raw mut length)
        };
        (asked == 0).then(|| TcpInfo {
            is_unanswered: info.tcpi_unacked > 0,
            silent: Duration::from_millis(info.tcpi_last_ack_recv.into()),
            again: info.tcpi_retransmits,
            time_out: Duration::from_micros(info.tcpi_rto.into()),
        })
    }

    /// Other systems than Linux are not asked.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn of(_stream: &TcpStream) -> Option<TcpInfo> {
        None
    }
}

/// What is not acknowledged is sent again after a second at most, however long TCP takes the path for. Systems before
/// Linux 6.15 have no such option.
#[cfg(target_os = "linux")]
pub(crate) fn limit_time_out(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    /// Of `linux/tcp.h`; libc does not name it.
    const TCP_RTO_MAX_MS: libc::c_int = 44;
    // The least that the option takes.
    let milliseconds: libc::c_int = 1000;
    // SAFETY: the value is an int, as the option asks for, of the length given, and lives through the call.
    let _ = unsafe {
        let value = (&raw const milliseconds).cast();
        let length = size_of_val(&milliseconds) as libc::socklen_t;
        libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, TCP_RTO_MAX_MS, value, length)
    };
}
