//! The host of this process.

/// Its name; `localhost` if the system does not report it.
pub fn name() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".into())
}
