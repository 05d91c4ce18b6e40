//! What a process announces at a meeting: exactly one of the kinds, and the bits of [`Announced`].

use lpf_core::runtime::Announced;

pub(crate) const REGISTERED: u32 = Announced::REGISTERED;
pub(crate) const RESIZED: u32 = Announced::RESIZED;
pub(crate) const ABANDONED: u32 = Announced::ABANDONED;
/// This process's line has its puts.
pub(crate) const PUTS: u32 = Announced::ENGINE;
/// Others read this process's rows or memory: a second meeting is needed.
pub(crate) const SECOND: u32 = Announced::ENGINE << 1;
/// It has rows: requests for others, or gets that name them.
pub(crate) const ROWS: u32 = SECOND | Announced::ENGINE << 2;
/// In a second meeting: this process found an error in phase 2 or 3.
pub(crate) const FAILED: u32 = Announced::ENGINE << 3;
/// A full sync.
pub(crate) const SYNC: u32 = Announced::ENGINE << 4;
/// The end of a section.
pub(crate) const CLOSE: u32 = Announced::ENGINE << 5;
/// The entry of a rehook.
pub(crate) const REHOOK: u32 = Announced::ENGINE << 6;
pub(crate) const KINDS: u32 = SYNC | CLOSE | REHOOK;

/// Whether all bits of `these` are among `all`.
#[inline]
pub(crate) fn have(all: u32, these: u32) -> bool {
    all & these == these
}
