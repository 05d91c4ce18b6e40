// The backend of a context is a type parameter, which has to be one.

#![allow(dead_code)]

use lpf_core::{Context, Result};

fn without_a_bound<L>(_ctx: &mut Context<'_, L>) -> Result<()> {
    Ok(())
}

fn main() {}
