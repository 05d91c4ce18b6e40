//! SPMD programs that can be started on any backend.

use crate::args::Args;
use crate::context::Context;
use crate::error::Result;
use crate::lpf::Lpf;

/// An SPMD function, generic over the backend that runs it.
///
/// A generic function is not a value that can be passed, so a program is a type. The macro
/// [`program!`](crate::program) writes it for a function. Between processes it travels as (module,
/// offset in it), so a portable program holds no data: its input is in [`Args`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a program",
    label = "expected a value of a type that `lpf::program!` makes",
    note = "a program is started in other processes by the name of its type: write `lpf::program! {{ fn Name(ctx, args) {{ ... }} }}` and pass `Name`",
    note = "on threads alone, a closure or a function will do: pass it to `lpf::exec`, or inside a section to `ctx.exec_closure`",
    note = "what a closure would capture goes into the arguments: `Args::input`, of which process 0 gets the bytes"
)]
pub trait Program: Copy + Send + Sync + 'static {
    /// What every process of the section runs.
    ///
    /// # Errors
    /// Any error makes the section fatal for the others.
    fn run<L: Lpf>(self, ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()>;
}

/// Writes the type of a [`Program`](crate::Program) for a function.
///
/// ```
/// lpf_core::program! {
///     /// Says hello.
///     pub fn Hello(ctx, _args) {
///         println!("hello from {} of {}", ctx.pid(), ctx.nprocs());
///         Ok(())
///     }
/// }
/// # fn is_program<P: lpf_core::Program>(_: P) {}
/// # is_program(Hello);
/// ```
#[macro_export]
macro_rules! program {
    ($(#[$meta:meta])* $visible:vis fn $name:ident($ctx:ident, $args:ident) $body:block) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $visible struct $name;

        impl $crate::Program for $name {
            fn run<L: $crate::Lpf>(
                self,
                $ctx: &mut $crate::Context<'_, L>,
                $args: $crate::Args<'_>,
            ) -> $crate::Result<()> $body
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "`program!` takes `fn Name(ctx, args) { ... }`: two names without types and without `mut`, and no return \
             type, because every program returns `lpf::Result<()>`"
        );
    };
}
