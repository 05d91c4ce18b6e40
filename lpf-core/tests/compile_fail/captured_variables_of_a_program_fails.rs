// A program is a type without data: variables of the function around it do not exist in other processes.

#![allow(dead_code)]

fn started_with(n: u32) {
    lpf_core::program! {
        fn Hello(_ctx, _args) {
            println!("{n}");
            Ok(())
        }
    }
    let _ = Hello;
}

fn main() {}
