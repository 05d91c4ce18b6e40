//! Calls that are refused at the caller, before anything is sent.

use lpf_core::{Cause, Context, Error, Lpf};

/// A call whose arguments are wrong in themselves, at the source location of the collective's caller.
#[cold]
#[track_caller]
pub(crate) fn misuse<L: Lpf>(ctx: &Context<'_, L>, text: String) -> Error {
    refused(ctx, Cause::Collective(text))
}

/// A call that is refused for another cause.
#[cold]
#[track_caller]
pub(crate) fn refused<L: Lpf>(ctx: &Context<'_, L>, cause: Cause) -> Error {
    let error = Error::misuse(ctx.pid(), ctx.superstep(), cause);
    error.at(std::panic::Location::caller().into())
}
