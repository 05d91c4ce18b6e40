//! Which barrier a section gets.

use lpf_core::wait::Patience;

use crate::barrier::Shape;
use crate::section::Environment;

pub(crate) fn shape(environment: &Environment, processes: usize, _patience: Patience) -> Shape {
    if processes <= environment.cores {
        return Shape::flat();
    }
    Shape::central(processes)
}
