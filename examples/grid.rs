//! Groups: rows and columns of a grid of processes, each with collectives of its own.

use lpf::collectives::{At, Collectives, MaxAt, Sum};
use lpf::{Context, Result};

fn grid(ctx: &mut Context<'_>) -> Result<()> {
    let mut all = Collectives::new(ctx)?;
    let (row, column) = (ctx.pid() / 2, ctx.pid() % 2);
    let mut in_row = all.split(ctx, Some(row))?.expect("every process names its row");
    let mut in_column = all.split(ctx, Some(column))?.expect("and its column");

    let own = ctx.pid() * ctx.pid() % 5 + 1;
    let of_row = in_row.allreduce_value(ctx, &Sum, own)?;
    let of_column = in_column.allreduce_value(ctx, &Sum, own)?;
    let largest = all.allreduce_value(ctx, &MaxAt, At::new(own, ctx.pid()))?;

    println!(
        "process {} has {own}: its row {of_row}, its column {of_column}; process {} has the largest, {}",
        ctx.pid(),
        largest.position,
        largest.value
    );
    Ok(())
}

fn main() -> Result<()> {
    lpf::run(grid)
}
