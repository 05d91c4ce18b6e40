//! A schedule carried out at one member.

mod expected;
mod full;

use std::panic::Location;

use lpf_core::{Error, Lpf, Pid, Raw, Result, error::Cause};

use crate::group::Group;
use crate::schedule::{Buffer, Region};
use crate::shared::{Place, Shared};

pub(crate) use expected::expected;
pub(crate) use full::full;

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
    pub(crate) group: &'a mut Group,
    pub(crate) shared: &'a mut Shared,
    pub(crate) buffers: Buffers,
    pub(crate) combine: Combine<'a>,
    /// The length of the parts that a message to be combined comes in: whole elements.
    pub(crate) part: usize,
    /// Whether a message to be combined may be read where it lies: a round does not write what it sends.
    pub(crate) lends: bool,
}

impl<L: Lpf> Call<'_, '_, L> {
    #[inline]
    fn place(&self, buffer: Buffer) -> Place {
        match buffer {
            Buffer::Input => self.buffers.input,
            Buffer::Output => self.buffers.output,
            Buffer::Scratch => self.shared.scratch,
        }
    }

    /// The address of a region.
    #[inline]
    fn address(&self, region: Region) -> *mut u8 {
        self.place(region.buffer).data.wrapping_add(region.span.start)
    }

    /// A message that is not as long as both ends think it is.
    #[cold]
    fn wrong_length(&self, from: Pid, expected: usize, came: usize) -> Error {
        let text = format!(
            "process {} awaits {expected} bytes of process {from} in a collective, and {came} came",
            self.raw.pid()
        );
        Error::fatal(from, self.raw.superstep(), Cause::Arrivals(text))
    }
}

/// The call is over. What fails in its middle ends the section: the others are in it, and memory is offered. Whom the
/// error names is told where it made its call, if that is not said: others may not know.
#[inline]
#[track_caller]
pub(crate) fn leave<L: Lpf>(raw: &mut Raw<'_, L>, done: Done) -> Done {
    raw.enter(Default::default());
    let place = Location::caller();
    done.map_err(|error| {
        let process = error.process().unwrap_or(raw.pid());
        let error = raw.fail(Error::fatal(process, raw.superstep(), error.cause().clone()));
        let is_own = error.process() == Some(raw.pid());
        match is_own && !error.reason().contains(&place.to_string()) {
            true => error.at(place.into()),
            false => error,
        }
    })
}

/// The result of a call.
type Done = Result<()>;
