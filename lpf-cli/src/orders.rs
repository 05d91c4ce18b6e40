//! `lpf measure`: a job that performs the tasks which a measuring command orders.

use crate::failure::{Failure, Result};
use crate::place::{Measurement, serve};
use crate::{bench, comply, probe};

/// Performs what is ordered on standard input, until there is no more.
pub(crate) fn answer() -> Result<()> {
    serve(|member, order| match &*order.task {
        probe::GAndL::NAME => member.answer::<probe::GAndL>(order),
        comply::Costs::NAME => member.answer::<comply::Costs>(order),
        bench::Round::NAME => member.answer::<bench::Round>(order),
        bench::Ours::NAME => member.answer::<bench::Ours>(order),
        bench::Messages::NAME => member.answer::<bench::Messages>(order),
        bench::Arriving::NAME => member.answer::<bench::Arriving>(order),
        other => Err(Failure::Failed(format!("there is no measurement {other}"))),
    })
}
