// A process is the thread it was started on: its context neither goes to another thread nor is used
// from one.

#![allow(dead_code)]

use lpf_core::{Context, Lpf};

fn sent<L: Lpf>(ctx: &mut Context<'_, L>) {
    std::thread::scope(|scope| {
        scope.spawn(|| ctx.sync());
    });
}

fn shared<L: Lpf + Sync>(ctx: &Context<'_, L>) {
    std::thread::scope(|scope| {
        scope.spawn(|| ctx.pid());
    });
}

fn main() {}
