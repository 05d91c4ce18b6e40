//! Names the sender of a message that was never awaited, and the call that it was sent in.

use std::time::{Duration, Instant};

use super::super::transport::Transport;
use super::super::watch::Watch;
use super::waiting::InMeeting;
use lpf_core::Call;
use lpf_core::error::Result;
use lpf_core::waits::Stream;

/// The longest wait for such a message to arrive.
const UNREAD: Duration = Duration::from_secs(1);

/// The stream of a message that no process awaits, and its call. The message has left its sender, so it arrives.
#[cold]
pub(super) fn find_unread<T: Transport>(
    net: &mut T,
    watch: &mut Watch,
    what: &mut InMeeting<'_>,
) -> Result<Option<(Stream, Option<Call>)>> {
    let until = Instant::now() + UNREAD;
    let mut found = None;
    watch.wait(net, what, |what, net| {
        what.links.progress(net, what.local)?;
        found = what.links.unread(net)?;
        Ok(found.is_some() || Instant::now() >= until)
    })?;
    Ok(found)
}
