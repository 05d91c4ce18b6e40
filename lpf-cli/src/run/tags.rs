//! What processes write, passed on line by line, each with its process's number: `3| text`.
//!
//! A thread of its own writes: where nobody reads, it waits, and signals are heard all the same.
//!
//! # Lines that are not finished
//! A prompt, or a progress bar that ends in a carriage return, is shown when it has waited for [`SOON`]. The
//! line is then that process's: if it goes on, its text is appended; if another process has a text first, the
//! line is ended before that, and the rest begins a new line with a tag. A tag follows each carriage return.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;

use super::milliseconds;
use crate::output::Standard;

/// What a line may hold before it is shown unfinished: memory is bounded.
const LONGEST: usize = 64 << 10;

/// What has waited this long for the end of its line is shown without it.
const SOON: Duration = Duration::from_millis(200);

/// Text of an unfinished line that is kept to be shown again: longer is no prompt.
const PROMPT: usize = 256;

/// Where the streams of processes are handed in. When it is dropped no more are to come.
#[derive(Debug)]
pub(super) struct Tags {
    added: Sender<Tagged>,
    /// Wakes the thread that passes on.
    more: PipeWriter,
    keyboard: bool,
}

/// One stream of one process.
#[derive(Debug)]
struct Tagged {
    rank: lpf::Pid,
    tag: String,
    stream: Standard,
    pipe: File,
    /// Read and not shown.
    line: Vec<u8>,
    /// Since when.
    since: Option<Instant>,
    /// The last byte shown was a carriage return.
    returned: bool,
    /// What a user types is on the same line of the terminal: this process may read it.
    echoes: bool,
    /// What such a line shows so far, without its tag.
    shown: Vec<u8>,
}

/// Where streams are shown: one line of it is unfinished, or none.
#[derive(Debug, Default)]
struct Screen {
    /// Whose, and of which of its streams.
    open: Option<(lpf::Pid, Standard)>,
}

impl Tags {
    /// Begins to pass on what is added. The second value is closed when all of it has been passed on.
    pub(super) fn begin() -> io::Result<(Self, PipeReader)> {
        // Made before any process: there may be no descriptor left after them.
        let ((done, open), (wake, more)) = (io::pipe()?, io::pipe()?);
        let (added, adding) = channel();
        thread::Builder::new().name("tags".into()).spawn(move || {
            let _open = open;
            pass_on(adding, wake);
        })?;
        Ok((Tags { added, more, keyboard: io::stdin().is_terminal() }, done))
    }

    /// One more stream.
    pub(super) fn add(&mut self, rank: lpf::Pid, stream: Standard, pipe: OwnedFd) {
        let is_terminal = match stream {
            Standard::Output => io::stdout().is_terminal(),
            Standard::Errors => io::stderr().is_terminal(),
        };
        let echoes = rank == 0 && self.keyboard && is_terminal;
        // The thread ends after this is gone.
        let _ = self.added.send(Tagged { echoes, ..Tagged::new(rank, stream, pipe) });
        let _ = self.more.write_all(&[0]);
    }
}

fn pass_on(adding: Receiver<Tagged>, mut wake: PipeReader) {
    let is_one =
        fstat(io::stdout()).ok().zip(fstat(io::stderr()).ok()).is_some_and(|(output, errors)| {
            (output.st_dev, output.st_ino) == (errors.st_dev, errors.st_ino)
        });
    let mut screens = [Screen::default(), Screen::default()];
    let screen = |stream| usize::from(stream == Standard::Errors && !is_one);
    let (mut all, mut more) = (Vec::<Tagged>::new(), true);
    let mut buffer = vec![0; LONGEST];
    while more || !all.is_empty() {
        let (woken, ready) = wait(&all, more.then_some(&wake));
        if woken {
            more = wake.read(&mut buffer).is_ok_and(|n| n > 0);
        }
        let mut ready = ready.into_iter();
        all.retain_mut(|tagged| {
            let screen = &mut screens[screen(tagged.stream)];
            match ready.next() {
                Some(true) => tagged.serve(&mut buffer, screen),
                _ if tagged.due().is_some_and(|due| due <= Instant::now()) => {
                    let whole = tagged.characters();
                    tagged.write(whole, screen)
                }
                _ => true,
            }
        });
        all.extend(adding.try_iter());
    }
}

/// Waits until more streams were added, or some can be read or are due: whether, and which can be read.
fn wait(all: &[Tagged], wake: Option<&PipeReader>) -> (bool, Vec<bool>) {
    let pipes = all.iter().map(|tagged| tagged.pipe.as_fd());
    let mut descriptors: Vec<_> = pipes
        .chain(wake.map(|wake| wake.as_fd()))
        .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN))
        .collect();
    let due = all.iter().filter_map(Tagged::due).min();
    let time = due.map(|due| milliseconds(due.saturating_duration_since(Instant::now())));
    if poll(&mut descriptors, time.unwrap_or(PollTimeout::NONE)).is_err() {
        // The system is short of memory.
        thread::sleep(Duration::from_millis(10));
    }
    let mut ready: Vec<_> = descriptors.iter().map(|one| one.any().unwrap_or(true)).collect();
    (wake.is_some() && ready.pop() == Some(true), ready)
}

impl Tagged {
    fn new(rank: lpf::Pid, stream: Standard, pipe: OwnedFd) -> Self {
        Tagged {
            rank,
            tag: format!("{rank}| "),
            stream,
            pipe: pipe.into(),
            line: Vec::new(),
            since: None,
            returned: false,
            echoes: false,
            shown: Vec::new(),
        }
    }

    /// When the beginning of a line is to be shown.
    fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + SOON)
    }

    /// Passes on the lines that are whole. False when there will be no more, or nobody wants it: then the
    /// pipe is closed, and the process that writes learns of it as it would have by itself.
    fn serve(&mut self, buffer: &mut [u8], screen: &mut Screen) -> bool {
        match self.pipe.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Ok(n) if n > 0 => {
                self.line.extend_from_slice(&buffer[..n]);
                let end = self.line.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                let is_long = self.line.len() - end >= LONGEST;
                self.write(if is_long { self.line.len() } else { end }, screen)
            }
            _ => {
                if !self.line.is_empty() || screen.open == Some(self.own()) {
                    self.line.push(b'\n');
                }
                self.write(self.line.len(), screen);
                false
            }
        }
    }

    /// Bytes without the beginning of a character at their end, if there is more.
    fn characters(&self) -> usize {
        match std::str::from_utf8(&self.line) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                error.valid_up_to()
            }
            _ => self.line.len(),
        }
    }

    fn own(&self) -> (lpf::Pid, Standard) {
        (self.rank, self.stream)
    }

    /// Shows so many bytes. The rest waits from now on.
    fn write(&mut self, bytes: usize, screen: &mut Screen) -> bool {
        let rest = self.line.split_off(bytes);
        let text = std::mem::replace(&mut self.line, rest);
        self.since = match self.line.is_empty() {
            true => None,
            false if bytes > 0 => Some(Instant::now()),
            false => self.since.or_else(|| Some(Instant::now())),
        };
        let text = self.tag(&text, screen);
        text.is_empty() || self.stream.write_all(&text).is_ok()
    }

    /// A text with tags, as it follows what the screen shows.
    fn tag(&mut self, text: &[u8], screen: &mut Screen) -> Vec<u8> {
        let mut tagged = Vec::new();
        for piece in text.split_inclusive(|&byte| byte == b'\n') {
            let mut rest = piece;
            if screen.open != Some(self.own()) {
                if screen.open.is_some() {
                    tagged.push(b'\n');
                }
                // It is at the beginning of a line already.
                if let [b'\r', after @ ..] = rest
                    && !after.starts_with(b"\n")
                {
                    rest = after;
                }
                tagged.extend_from_slice(self.tag.as_bytes());
                self.shown.clear();
            } else if self.returned {
                if !rest.starts_with(b"\n") {
                    tagged.extend_from_slice(self.tag.as_bytes());
                }
            } else if self.echoes && self.shown.len() <= PROMPT {
                // The user's answer may have ended the line on the terminal.
                tagged.push(b'\r');
                tagged.extend_from_slice(self.tag.as_bytes());
                tagged.extend_from_slice(&self.shown);
            }
            let mut parts = rest.split_inclusive(|&byte| byte == b'\r').peekable();
            while let Some(part) = parts.next() {
                tagged.extend_from_slice(part);
                if parts.peek().is_some_and(|next| !next.starts_with(b"\n")) {
                    tagged.extend_from_slice(self.tag.as_bytes());
                }
            }
            let is_whole = piece.ends_with(b"\n");
            screen.open = (!is_whole).then(|| self.own());
            self.returned = piece.ends_with(b"\r");
            if self.echoes {
                let begin = rest.iter().rposition(|&byte| byte == b'\r').map(|at| at + 1);
                if is_whole || begin.is_some() {
                    self.shown.clear();
                }
                if !is_whole {
                    self.shown.extend_from_slice(&rest[begin.unwrap_or(0)..]);
                }
            }
        }
        tagged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(rank: lpf::Pid) -> Tagged {
        let (reader, _writer) = io::pipe().unwrap();
        Tagged::new(rank, Standard::Output, reader.into())
    }

    #[test]
    fn what_is_not_finished_is_the_line_of_its_process_until_another_has_a_text() {
        let (mut one, mut two, mut screen) = (tagged(1), tagged(2), Screen::default());
        let cases: &[(usize, &str, &str)] = &[
            (1, "one\n", "1| one\n"),
            (1, "\n", "1| \n"),
            (1, "Name? ", "1| Name? "),
            (1, "Bob\nnext", "Bob\n1| next"),
            (2, "two\n", "\n2| two\n"),
            (1, " line\n", "1|  line\n"),
            // Progress.
            (1, " 10 %\r", "1|  10 %\r"),
            (1, " 20 %\r 30 %", "1|  20 %\r1|  30 %"),
            (1, "\r 40 %", "\r1|  40 %"),
            (2, "\r 5 %", "\n2|  5 %"),
            (1, "\r 50 %\r\n", "\n1|  50 %\r\n"),
            (2, "\r\n", "2| \r\n"),
            (1, "a\r", "1| a\r"),
            (1, "\n", "\n"),
        ];
        for &(who, text, expected) in cases {
            let own = if who == 1 { &mut one } else { &mut two };
            let shown = own.tag(text.as_bytes(), &mut screen);
            assert_eq!(String::from_utf8(shown).unwrap(), expected, "{who}: {text:?}");
        }
    }

    #[test]
    fn what_follows_a_prompt_is_tagged_though_the_user_has_ended_the_line() {
        let (mut zero, mut screen) = (Tagged { echoes: true, ..tagged(0) }, Screen::default());
        assert_eq!(zero.tag(b"...\rName? ", &mut screen), b"0| ...\r0| Name? ");
        assert_eq!(zero.tag(b"Hello\nnext", &mut screen), b"\r0| Name? Hello\n0| next");
    }

    #[test]
    fn a_character_is_shown_whole() {
        let mut one = tagged(1);
        for (text, whole) in
            [("a\u{e4}".as_bytes(), 3), (&b"a\xc3"[..], 1), (b"a\xc3b", 3), (b"\xc3", 1)]
        {
            one.line = text.into();
            assert_eq!(one.characters(), whole, "{text:?}");
        }
    }
}
