//! What processes write, passed on line by line, each with its process's number: `3| text`.
//!
//! A thread of its own writes: where nobody reads, it waits, and signals are heard all the same.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use crate::output::Standard;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A line longer than this is passed on in pieces, each like a line: memory is bounded.
const LONGEST: usize = 64 << 10;

/// All streams of all processes.
#[derive(Debug)]
pub(super) struct Tags {
    all: Vec<Tagged>,
    /// Made before any process: there may be no descriptor left after them.
    done: PipeReader,
    open: PipeWriter,
}

/// One stream of one process.
#[derive(Debug)]
struct Tagged {
    tag: String,
    stream: Standard,
    pipe: File,
    /// The beginning of a line.
    line: Vec<u8>,
}

impl Tags {
    pub(super) fn new() -> io::Result<Self> {
        let (done, open) = io::pipe()?;
        Ok(Tags { all: Vec::new(), done, open })
    }

    /// One more stream.
    pub(super) fn add(&mut self, rank: lpf::Pid, stream: Standard, pipe: Option<OwnedFd>) {
        self.all.extend(pipe.map(|pipe| Tagged::new(rank, stream, pipe)));
    }

    /// Passes all of it on. What is returned is closed when that is done.
    pub(super) fn pass_on(self) -> io::Result<PipeReader> {
        let Tags { mut all, done, open } = self;
        thread::Builder::new().name("tags".into()).spawn(move || {
            let _open = open;
            let mut buffer = vec![0; LONGEST];
            while !all.is_empty() {
                let mut ready = wait(&all).into_iter();
                all.retain_mut(|tagged| ready.next() == Some(false) || tagged.serve(&mut buffer));
            }
        })?;
        Ok(done)
    }
}

/// Waits until some can be read: which.
fn wait(all: &[Tagged]) -> Vec<bool> {
    let polled = |tagged: &Tagged| -> bool {
        let mut one = [PollFd::new(tagged.pipe.as_fd(), PollFlags::POLLIN)];
        poll(&mut one, PollTimeout::ZERO).is_ok_and(|n| n > 0)
    };
    let mut descriptors: Vec<_> =
        all.iter().map(|tagged| PollFd::new(tagged.pipe.as_fd(), PollFlags::POLLIN)).collect();
    match poll(&mut descriptors, PollTimeout::NONE) {
        Ok(_) => descriptors.iter().map(|one| one.any().unwrap_or(true)).collect(),
        // More than the system polls at once.
        Err(_) => all.iter().map(polled).collect(),
    }
}

impl Tagged {
    fn new(rank: lpf::Pid, stream: Standard, pipe: OwnedFd) -> Self {
        Tagged { tag: format!("{rank}| "), stream, pipe: pipe.into(), line: Vec::new() }
    }

    /// Passes on what there is. False when there will be no more, or nobody wants it: then the pipe is
    /// closed, and the process that writes learns of it as it would have by itself.
    fn serve(&mut self, buffer: &mut [u8]) -> bool {
        match self.pipe.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Ok(n) if n > 0 => self.write(&buffer[..n]),
            _ => {
                if !self.line.is_empty() {
                    self.write(b"\n");
                }
                false
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> bool {
        let text = self.tag(bytes);
        self.stream.write_all(&text).is_ok()
    }

    /// The lines that are now whole, with tags.
    fn tag(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            let whole = self.line.ends_with(b"\n");
            if whole || self.line.len() >= LONGEST {
                text.extend_from_slice(self.tag.as_bytes());
                text.append(&mut self.line);
                if !whole {
                    text.push(b'\n');
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_tagged_when_they_are_whole_and_long_ones_in_pieces() {
        let (reader, _writer) = io::pipe().unwrap();
        let mut tagged = Tagged::new(3, Standard::Output, reader.into());
        assert_eq!(tagged.tag(b"one\ntw"), b"3| one\n");
        assert_eq!(tagged.tag(b"o\n\nthree"), b"3| two\n3| \n");
        assert_eq!(tagged.tag(b"\n"), b"3| three\n");
        let long = tagged.tag(&vec![b'x'; LONGEST]);
        assert_eq!(long.len(), LONGEST + 4);
        assert_eq!(tagged.tag(b"y\n"), b"3| y\n");
    }
}
