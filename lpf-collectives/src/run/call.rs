//! What a member carries a schedule out with.

use std::panic::Location;

use lpf_core::{CallValues, Error, Lpf, Pid, Raw, Result, arrivals, error::Cause};

use crate::group::Group;
use crate::schedule::{Buffer, Region};
use crate::shared::{Place, Shared};

/// The memory of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub(crate) input: Place,
    pub(crate) output: Place,
}

/// `combine(left, right, into, bytes)`: the operator on whole elements. `into` is one of the operands or
/// overlaps neither.
pub(crate) type Combine<'a> = &'a mut dyn FnMut(*const u8, *const u8, *mut u8, usize);

/// What a member carries its schedule out with.
pub(crate) struct Call<'a, 'r, L: Lpf> {
    pub(crate) raw: &'a mut Raw<'r, L>,
    /// What it is to the others, with its place in the program.
    pub(crate) which: arrivals::Call,
    /// What its members agree on.
    pub(crate) values: Option<&'a dyn CallValues>,
    pub(crate) group: &'a mut Group,
    pub(crate) shared: &'a mut Shared,
    pub(crate) buffers: &'a Buffers,
    pub(crate) combine: Combine<'a>,
    /// The length of the parts that a message to be combined comes in: whole elements.
    pub(crate) part: usize,
    /// Whether a message to be combined may be read where it lies: a round does not write what it sends.
    pub(crate) lends: bool,
}

impl<L: Lpf> Call<'_, '_, L> {
    #[inline]
    pub(super) fn place(&self, buffer: Buffer) -> Place {
        match buffer {
            Buffer::Input => self.buffers.input,
            Buffer::Output => self.buffers.output,
            Buffer::Scratch => self.shared.scratch,
        }
    }

    /// The address of a region.
    #[inline]
    pub(super) fn address(&self, region: Region) -> *mut u8 {
        self.place(region.buffer).data.wrapping_add(region.span.start)
    }

    /// A message that is not as long as both ends think it is.
    #[cold]
    pub(super) fn wrong_length(&self, from: Pid, expected: usize, came: usize) -> Error {
        let (own, which) = (self.raw.pid(), self.which);
        let text = format!(
            "process {own}, in {which}, awaits {expected} bytes of process {from}, and {came} came"
        );
        Error::fatal(from, self.raw.superstep(), Cause::Disagreement(text))
    }
}

/// The call is over. What fails in its middle ends the section: the others are in it, and memory is offered. An error
/// that names this process gets the place of its call, which others may not know.
#[inline]
#[track_caller]
pub(crate) fn leave<L: Lpf>(raw: &mut Raw<'_, L>, done: Done) -> Done {
    raw.enter(Default::default());
    let (own, place) = (raw.pid(), Location::caller());
    let placed = |error: Error| {
        let is_own = error.process() == Some(own);
        match is_own && !error.reason().contains(&place.to_string()) {
            true => error.at(place.into()),
            false => error,
        }
    };
    done.map_err(|error| {
        let process = error.process().unwrap_or(own);
        let error = Error::fatal(process, raw.superstep(), error.cause().clone());
        // Before the others hear of it; and it may be the report of another process that comes back.
        placed(raw.fail(placed(error)))
    })
}

/// The result of a call.
pub(super) type Done = Result<()>;
