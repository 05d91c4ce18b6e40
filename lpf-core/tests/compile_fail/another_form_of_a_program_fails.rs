// The macro writes the types. A function in another form is told which form is wanted.

#![allow(dead_code)]

lpf_core::program! {
    fn WithAResult(ctx, args) -> lpf_core::Result<()> {
        ctx.sync()
    }
}

lpf_core::program! {
    fn WithMut(ctx, mut args) {
        args.input = &[];
        ctx.sync()
    }
}

lpf_core::program! {
    pub fn WithOneParameter(ctx) {
        ctx.sync()
    }
}

lpf_core::program! {
    fn WithTypes(ctx: &mut lpf_core::Context<'_, L>, args: lpf_core::Args<'_>) {
        ctx.sync()
    }
}

fn main() {}
