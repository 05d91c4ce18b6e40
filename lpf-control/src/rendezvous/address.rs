//! Addresses: what a name stands for, and what may be used without a secret.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use lpf_core::settings;
use mio::Waker;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::error::MeetError;
use super::secret::Secret;
use super::words::{MOST_ADDRESSES, Place, canonical};

/// An address is looked up again after so long, as long as it is needed.
const AGAIN: Duration = Duration::from_millis(500);

/// One address of a meeting, `host:port`.
#[derive(Debug)]
struct Name {
    text: String,
    /// What it stands for, as far as is known; of a literal address, itself.
    found: Vec<SocketAddr>,
    /// Why it stands for nothing.
    trouble: Option<String>,
    /// Looks it up; there is none for a literal address.
    asked: Option<Asked>,
}

/// A thread that looks a name up each time it is asked, because the system's call has no time limit. It ends
/// when the sender is dropped.
#[derive(Debug)]
struct Asked {
    ask: Sender<()>,
    answers: Receiver<io::Result<Vec<SocketAddr>>>,
    /// When to ask again; `None` while an answer is awaited.
    next: Option<Instant>,
}

/// The addresses of a meeting, looked up again and again: a name may become known, and change what it stands
/// for, while processes wait for each other.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<Name>,
}

impl Names {
    /// Begins to look up `host:port`, or several such, separated by commas. `waker` is woken by each answer.
    ///
    /// # Errors
    /// If any of them is not an address.
    pub(super) fn new(addresses: &str, waker: &Arc<Waker>) -> Result<Self, MeetError> {
        let texts = well_formed(addresses)?;
        let names = texts.into_iter().map(|text| Name::new(text, waker.clone()));
        Ok(Names { names: names.collect::<Result<_, _>>()? })
    }

    /// Takes the answers that have arrived, and asks again where it is time. True if anything has changed.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        let looked = self.names.iter_mut().map(|name| name.look(now));
        // All of them look.
        looked.fold(false, |one, other| one | other)
    }

    /// When to look again, unless an answer arrives before.
    pub(super) fn due(&self) -> Option<Instant> {
        self.names.iter().filter_map(|name| name.asked.as_ref()?.next).min()
    }

    /// All that the addresses stand for.
    pub(super) fn found(&self) -> Vec<SocketAddr> {
        self.names.iter().flat_map(|name| &name.found).copied().collect()
    }

    /// Whether they are loopback addresses, by number: then no process on another machine finds process 0.
    pub(super) fn are_here(&self) -> bool {
        let is_loopback = |address: &SocketAddr| canonical(*address).ip().is_loopback();
        self.names.iter().all(|name| name.asked.is_none() && name.found.iter().all(is_loopback))
    }

    /// Whether what they stand for may change.
    pub(super) fn may_change(&self) -> bool {
        self.names.iter().any(|name| name.asked.is_some())
    }

    /// Why an address stands for nothing, if all do.
    pub(super) fn trouble(&self) -> String {
        self.names.iter().filter_map(|name| name.trouble.as_deref()).collect::<Vec<_>>().join("; ")
    }

    /// Where process 0 listens, and whether other machines may know an address and not reach it there.
    ///
    /// A machine's own name often stands for a loopback address there (Debian's `/etc/hosts` gives it
    /// 127.0.1.1) and for another one everywhere else. With a secret process 0 listens on all addresses then.
    /// Without one all processes are on this machine, and find it under the same name.
    pub(super) fn to_listen(&self, secret: Option<&Secret>) -> (Vec<SocketAddr>, bool) {
        let (mut all, mut is_hidden) = (Vec::new(), false);
        for Name { text, found, .. } in &self.names {
            match loopback_of_a_name(text, found) {
                Some(port) if secret.is_some() => all.extend(everywhere(port)),
                nowhere_else => {
                    is_hidden |= nowhere_else.is_some();
                    all.extend(found);
                }
            }
        }
        (all, is_hidden)
    }
}

impl Name {
    fn new(text: &str, waker: Arc<Waker>) -> Result<Self, MeetError> {
        let text = text.to_owned();
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Name { text, found: vec![address], trouble: None, asked: None });
        }
        let ((ask, asks), (tell, answers)) = (channel(), channel());
        let name = text.clone();
        let look_up = move || {
            while asks.recv().is_ok() {
                if tell.send(name.to_socket_addrs().map(Vec::from_iter)).is_err() {
                    return;
                }
                // It fails only if the process that waits has just been woken very often.
                let _ = waker.wake();
            }
        };
        let thread = std::thread::Builder::new().name("lpf name".into());
        thread.spawn(look_up).map_err(MeetError::system)?;
        let asked = Some(Asked { ask, answers, next: Some(Instant::now()) });
        let trouble = Some(format!("no name server has answered what \"{text}\" stands for"));
        Ok(Name { text, found: Vec::new(), trouble, asked })
    }

    fn look(&mut self, now: Instant) -> bool {
        let Some(Asked { ask, answers, next }) = &mut self.asked else { return false };
        let answer = answers.try_recv();
        if answer.is_ok() {
            *next = now.checked_add(AGAIN);
        }
        if next.is_some_and(|due| due <= now) {
            // The thread is there as long as this sender.
            *next = ask.send(()).is_err().then_some(now + AGAIN);
        }
        let unknown = |reason: String| format!("\"{}\" is not known here: {reason}", self.text);
        match answer {
            Ok(Ok(found)) if !found.is_empty() => {
                let is_new = self.found != found;
                (self.found, self.trouble) = (found, None);
                is_new
            }
            Ok(answer) => {
                let reason = answer.map_or_else(|error| error.to_string(), |_| "no address".into());
                self.trouble = Some(unknown(reason));
                // What it stood for before may be right still.
                false
            }
            Err(_) => false,
        }
    }
}

/// The parts of an address, each of the form `host:port`.
///
/// # Errors
/// If any part is not an address.
pub(super) fn well_formed(addresses: &str) -> Result<Vec<&str>, MeetError> {
    settings::addresses(addresses).ok_or_else(|| {
        MeetError::Setting(format!("\"{addresses}\" is not an address: {}", settings::ADDRESS))
    })
}

/// The port, if a name that other machines may know stands for a loopback address here.
fn loopback_of_a_name(address: &str, found: &[SocketAddr]) -> Option<u16> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_ascii_lowercase();
    let is_local = host.split('.').any(|part| part == "localhost");
    let is_name = address.parse::<SocketAddr>().is_err() && !is_local;
    let mut loopback = found.iter().filter(|found| canonical(**found).ip().is_loopback());
    loopback.next().map(SocketAddr::port).filter(|_| is_name)
}

/// All addresses of this machine: of both kinds where there is the newer one.
pub(super) fn everywhere(port: u16) -> [SocketAddr; 2] {
    [SocketAddr::from(([0u16; 8], port)), SocketAddr::from(([0; 4], port))]
}

/// Addresses at which other machines may find this one, as many as a process announces.
pub(super) fn announced() -> Vec<IpAddr> {
    let mut all = own().unwrap_or_default();
    all.truncate(MOST_ADDRESSES);
    all
}

/// The addresses at which other machines may find this one.
pub(super) fn own() -> Result<Vec<IpAddr>, MeetError> {
    let all = nix::ifaddrs::getifaddrs().map_err(|error| MeetError::system(error.into()))?;
    let ip = |address: nix::sys::socket::SockaddrStorage| match (
        address.as_sockaddr_in(),
        address.as_sockaddr_in6(),
    ) {
        (Some(v4), _) => Some(IpAddr::V4(v4.ip())),
        // A link-local one means something on one network only.
        (_, Some(v6)) if !v6.ip().is_unicast_link_local() => Some(IpAddr::V6(v6.ip())),
        _ => None,
    };
    let found = all.filter_map(|interface| ip(interface.address?));
    Ok(found.filter(|ip| !ip.is_loopback()).collect())
}

/// Without a secret only this machine may be spoken to: whoever meets may make the others run any
/// function of the program.
pub(super) fn may_use(address: SocketAddr, secret: Option<&Secret>) -> Result<(), MeetError> {
    if secret.is_some() || canonical(address).ip().is_loopback() {
        return Ok(());
    }
    Err(MeetError::Setting(format!(
        "{address} can be reached from other machines, so the processes need a shared secret (LPF_SECRET, \
         16 characters or more, the same for all); without one only a loopback address may be used"
    )))
}

/// So many callers may wait to be accepted: with the standard library's 128, those of a larger job would
/// be turned away and come again after a second.
const CALLERS: i32 = 1024;

/// Makes room for all who call at once.
pub(super) fn widen(listener: &TcpListener) {
    // Where it is refused, who finds no room comes again.
    let _ = SockRef::from(listener).listen(CALLERS);
}

/// Listens at an address; at `[::]` for both kinds of callers, whatever the system's `bindv6only`.
pub(super) fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // As the standard library has it: a port is free as soon as nobody listens there.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(CALLERS)?;
    Ok(socket.into())
}

/// Listens at the first of these addresses that can be had.
///
/// # Errors
/// As [`cannot_listen`] has it.
pub(super) fn listen(addresses: &[SocketAddr]) -> Result<TcpListener, MeetError> {
    let mut last = MeetError::Setting("there is no address to listen at".into());
    for &address in addresses {
        match listen_at(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = cannot_listen(address, &error),
        }
    }
    Err(last)
}

/// An address of another machine, or one that this user may not have, is a wrong setting; one that is taken is
/// free again later.
pub(super) fn cannot_listen(address: SocketAddr, error: &io::Error) -> MeetError {
    match error.kind() {
        ErrorKind::AddrNotAvailable | ErrorKind::PermissionDenied => {
            MeetError::Setting(format!("process 0 cannot listen at {address}: {error}"))
        }
        ErrorKind::AddrInUse => MeetError::Listen { address, reason: error.to_string() },
        _ => MeetError::System(error.to_string()),
    }
}

/// Listens where processes of higher rank find this one: on all addresses of the machine if they may be on another
/// machine, else on the one by which it reached process 0.
pub(super) fn listen_for_pairs(
    local: SocketAddr,
    may_be_far: bool,
) -> Result<TcpListener, MeetError> {
    match may_be_far {
        true => listen(&everywhere(0)),
        false => listen(&[SocketAddr::new(local.ip(), 0)]),
    }
}

/// Where a process that process 0 sees at `seen`, with a listener at `port`, is found by one that it
/// sees at `by`.
pub(super) fn place(seen: SocketAddr, port: u16, by: SocketAddr) -> Place {
    let (seen, by) = (canonical(seen).ip(), canonical(by).ip());
    match seen.is_loopback() && !by.is_loopback() {
        true => Place::WithHost(port),
        false => Place::At(seen, port),
    }
}

/// All places of such a process, which also has these addresses; the likeliest first.
pub(super) fn places(
    seen: SocketAddr,
    port: u16,
    addresses: &[IpAddr],
    by: SocketAddr,
) -> Vec<Place> {
    let first = place(seen, port, by);
    let more = addresses.iter().take(MOST_ADDRESSES).map(|&ip| Place::At(ip, port));
    std::iter::once(first).chain(more.filter(|&more| more != first)).collect()
}

/// The address of a place, for one that reached process 0 at `host`.
pub(super) fn address_of(place: Place, host: SocketAddr) -> SocketAddr {
    match (place, host) {
        (Place::At(IpAddr::V6(ip), port), SocketAddr::V6(host)) if ip.is_unicast_link_local() => {
            // Such an address means something on one network only: that of process 0.
            SocketAddrV6::new(ip, port, 0, host.scope_id()).into()
        }
        (Place::At(ip, port), _) => SocketAddr::new(ip, port),
        (Place::WithHost(port), mut host) => {
            host.set_port(port);
            host
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn without_a_secret_only_loopback() {
        let secret = Secret::random().unwrap();
        for loopback in ["127.0.0.1:1", "127.3.2.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(may_use(at(loopback), None).is_ok(), "{loopback}");
        }
        for other in ["10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[fd00::2]:1", "[::ffff:10.0.0.1]:1"] {
            let text = may_use(at(other), None).unwrap_err().to_string();
            assert!(text.contains("need a shared secret"), "{text}");
            assert!(may_use(at(other), Some(&secret)).is_ok(), "{other}");
        }
    }

    #[test]
    fn who_shares_the_machine_of_process_0_is_found_there() {
        let (near, far, host) = (at("127.0.0.1:4000"), at("10.0.0.7:4000"), at("10.0.0.1:99"));
        assert_eq!(address_of(place(near, 5, far), host), at("10.0.0.1:5"));
        assert_eq!(address_of(place(near, 5, near), at("127.0.0.1:99")), at("127.0.0.1:5"));
        assert_eq!(address_of(place(far, 5, near), at("127.0.0.1:99")), at("10.0.0.7:5"));
        let mapped = at("[::ffff:10.0.0.7]:4000");
        assert_eq!(address_of(place(mapped, 5, far), host), at("10.0.0.7:5"));
    }

    #[test]
    fn a_link_local_address_goes_with_its_network() {
        let place = place(at("[fe80::7]:4000"), 5, at("[fe80::8]:4000"));
        let host = SocketAddrV6::new("fe80::1".parse().unwrap(), 99, 0, 3).into();
        let SocketAddr::V6(address) = address_of(place, host) else { panic!() };
        assert_eq!((address.port(), address.scope_id()), (5, 3));
    }

    #[test]
    fn an_address_of_another_machine_is_a_wrong_setting_and_one_that_is_taken_is_not() {
        let far = listen(&[at("192.0.2.1:0")]).unwrap_err();
        assert!(matches!(&far, MeetError::Setting(text) if text.contains("192.0.2.1")), "{far}");
        let first = listen(&[at("127.0.0.1:0")]).unwrap();
        let taken = listen(&[first.local_addr().unwrap()]).unwrap_err();
        assert!(matches!(taken, MeetError::Listen { .. }), "{taken}");
        assert!(taken.to_string().ends_with("choose another port"), "{taken}");
    }

    #[test]
    fn a_name_that_is_loopback_here_alone_is_told_from_one_that_is_everywhere() {
        let debian = [at("127.0.1.1:4000")];
        assert_eq!(loopback_of_a_name("node1:4000", &debian), Some(4000));
        assert_eq!(loopback_of_a_name("node1.example:4000", &debian), Some(4000));
        assert_eq!(loopback_of_a_name("node1:4000", &[at("10.0.0.1:4000")]), None);
        for literal in
            ["127.0.1.1:4000", "[::1]:4000", "localhost:4000", "LocalHost.localdomain:4000"]
        {
            assert_eq!(loopback_of_a_name(literal, &debian), None, "{literal}");
        }
    }

    #[test]
    fn an_address_that_is_none_is_named() {
        for wrong in ["", "localhost", "localhost:0", "[::1]:0", "a:80,b", "a:80,"] {
            let text = well_formed(wrong).unwrap_err().to_string();
            assert!(
                text.starts_with(&format!("\"{wrong}\" is not an address: host:port ")),
                "{text}"
            );
        }
        assert_eq!(well_formed("a:80, [::1]:90").unwrap(), ["a:80", "[::1]:90"]);
    }

    #[test]
    fn a_listener_at_all_addresses_hears_both_kinds_of_callers() {
        let listener = listen(&everywhere(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        if listener.local_addr().unwrap().is_ipv6() {
            std::net::TcpStream::connect(("::1", port)).unwrap();
        }
    }
}
