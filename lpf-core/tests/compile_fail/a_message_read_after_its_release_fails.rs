// Dropping a message gives its cell back to the sender, who may write into it at once.

#![allow(dead_code)]

use lpf_core::Message;

fn moved(message: Message<'_, u64>) -> u64 {
    drop(message);
    message[0]
}

fn borrowed(message: Message<'_, u64>) -> u64 {
    let elements = &message[..];
    drop(message);
    elements[0]
}

fn outlived<'a>(message: Message<'_, u64>) -> &'a [u64] {
    &message
}

fn main() {}
