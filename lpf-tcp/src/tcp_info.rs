//! What the system knows of a connection.

use std::time::Duration;

use mio::net::TcpStream;

/// As of now.
pub(crate) struct TcpInfo {
    /// Whether something that was sent is not acknowledged. The other side's system acknowledges whatever its program
    /// does, stopped or not; so after some time nothing comes through.
    pub(crate) is_unanswered: bool,
    /// Nothing has come from the other side for so long.
    pub(crate) silent: Duration,
    /// So often the system has sent something again since.
    pub(crate) again: u8,
    /// What is not acknowledged is sent again after so long.
    pub(crate) time_out: Duration,
}

impl TcpInfo {
    /// Asks for it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn of(stream: &TcpStream) -> Option<TcpInfo> {
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

    /// Not known elsewhere.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn of(_stream: &TcpStream) -> Option<TcpInfo> {
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
