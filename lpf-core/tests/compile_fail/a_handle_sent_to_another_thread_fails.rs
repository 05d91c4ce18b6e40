// Memory belongs to the process that registered it: no handle of it goes to another thread.

#![allow(dead_code)]

use lpf_core::{Area, Local, Part};

fn elsewhere<T: Send>(_: T) {}

fn area(area: Area<'_, u64>) {
    elsewhere(area);
}

fn borrowed(area: &Area<'_, u64>) {
    elsewhere(area);
}

fn local(area: Local<'_, u64>) {
    elsewhere(area);
}

fn part(part: Part<'_, u64>) {
    elsewhere(part);
}

fn main() {}
