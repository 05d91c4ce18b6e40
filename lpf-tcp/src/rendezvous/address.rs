//! Addresses: what a name stands for, and what may be used without a secret.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

use lpf_core::wait::deadline;

use super::words::{Place, canonical};
use super::{MeetError, Secret};

/// The addresses of `host:port`, or of several such, separated by commas.
pub(super) fn resolve(addresses: &str, time: Duration) -> Result<Vec<SocketAddr>, MeetError> {
    Ok(resolve_each(addresses, time)?.into_iter().flat_map(|(_, found)| found).collect())
}

/// Each with what it stands for, of those that stand for anything: one is enough. Takes no longer than `time`
/// for all of them.
fn resolve_each(
    addresses: &str,
    time: Duration,
) -> Result<Vec<(&str, Vec<SocketAddr>)>, MeetError> {
    let end = deadline(Instant::now(), time);
    let (mut all, mut unknown) = (Vec::new(), None);
    for address in addresses.split(',').map(str::trim) {
        match resolve_one(address, end.saturating_duration_since(Instant::now())) {
            Ok(found) => all.push((address, found)),
            Err(error) => unknown = unknown.or(Some(error)),
        }
    }
    match unknown {
        Some(error) if all.is_empty() => Err(error),
        _ => Ok(all),
    }
}

/// A name server that does not answer is waited for no longer than `time`: the question is asked in a
/// thread of its own, because the system's call knows no time-out.
fn resolve_one(address: &str, time: Duration) -> Result<Vec<SocketAddr>, MeetError> {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let is_formed = address.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains([':', '/']) && port.parse::<u16>().is_ok()
    });
    let unknown = |reason: String| {
        let what =
            if is_formed { "is not known here" } else { "is no address of the form host:port" };
        MeetError::Setting(format!("\"{address}\" {what}: {reason}"))
    };
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let name = address.to_owned();
    let asks = move || {
        // Nobody may wait for the answer any more.
        let _ = tell.send(name.to_socket_addrs().map(Vec::from_iter));
    };
    std::thread::Builder::new().name("lpf name".into()).spawn(asks).map_err(MeetError::system)?;
    match told.recv_timeout(time) {
        Ok(Ok(addresses)) if addresses.is_empty() => Err(unknown("it stands for nothing".into())),
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(unknown(error.to_string())),
        Err(_) => Err(unknown("no name server answers".into())),
    }
}

/// Where process 0 listens, of what an address stands for at its own machine, and whether other machines may
/// know that address and not reach it there.
///
/// A machine's own name often stands for a loopback address there (Debian's `/etc/hosts` gives it
/// 127.0.1.1) and for another one everywhere else. With a secret process 0 listens on all addresses then.
/// Without one all processes are on this machine, and find it under the same name.
pub(super) fn to_listen(
    addresses: &str,
    time: Duration,
    secret: Option<&Secret>,
) -> Result<(Vec<SocketAddr>, bool), MeetError> {
    let (mut all, mut is_hidden) = (Vec::new(), false);
    for (address, found) in resolve_each(addresses, time)? {
        match loopback_of_a_name(address, &found) {
            Some(port) if secret.is_some() => all.extend(everywhere(port)),
            nowhere_else => {
                is_hidden |= nowhere_else.is_some();
                all.extend(found);
            }
        }
    }
    Ok((all, is_hidden))
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
fn everywhere(port: u16) -> [SocketAddr; 2] {
    [SocketAddr::from(([0u16; 8], port)), SocketAddr::from(([0; 4], port))]
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
    let _ = socket2::SockRef::from(listener).listen(CALLERS);
}

/// Listens at the first of these addresses that can be had.
///
/// # Errors
/// One of another machine, or that this user may not have, is a wrong setting; one that is taken is free
/// again later.
pub(super) fn listen(addresses: &[SocketAddr]) -> Result<TcpListener, MeetError> {
    let mut last = None;
    for &address in addresses {
        match TcpListener::bind(address) {
            Ok(listener) => {
                widen(&listener);
                return Ok(listener);
            }
            Err(error) => last = Some((address, error)),
        }
    }
    Err(match last {
        Some((address, error)) => match error.kind() {
            ErrorKind::AddrNotAvailable | ErrorKind::PermissionDenied => {
                MeetError::Setting(format!("process 0 cannot listen at {address}: {error}"))
            }
            ErrorKind::AddrInUse => MeetError::Listen { address, reason: error.to_string() },
            _ => MeetError::system(error),
        },
        None => MeetError::Setting("there is no address to listen at".into()),
    })
}

/// Listens where processes of higher rank find this one: on all addresses of the machine where they need
/// a secret, else on the one by which it reached process 0.
pub(super) fn listen_for_pairs(
    local: SocketAddr,
    secret: Option<&Secret>,
) -> Result<TcpListener, MeetError> {
    let mut address = match (secret, local) {
        (None, local) => local,
        (Some(_), SocketAddr::V4(_)) => SocketAddr::from(([0; 4], 0)),
        (Some(_), SocketAddr::V6(_)) => SocketAddr::from(([0u16; 8], 0)),
    };
    address.set_port(0);
    listen(&[address])
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
        let time = Duration::from_secs(5);
        let text = resolve("localhost", time).unwrap_err().to_string();
        assert!(text.starts_with("\"localhost\" is no address of the form host:port"), "{text}");
        assert!(resolve("localhost, localhost:80", time).is_ok_and(|found| !found.is_empty()));
        assert!(resolve("localhost:80", time).unwrap().iter().all(|found| found.port() == 80));
    }
}
