//! What processes are handed on request; see [`lpf::launcher::ask`].

use std::io::{self, IsTerminal, PipeReader};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use lpf::launcher::answer;

use super::tags::Tags;
use crate::output::Standard;

/// All that there is to hand out.
#[derive(Debug)]
pub(super) struct Desk {
    /// Where process 0 listens, and the address.
    listener: Option<(TcpListener, String)>,
    tags: Option<Tags>,
}

impl Desk {
    /// With tags, the second value is closed when all that processes have written has been passed on.
    pub(super) fn open(
        listener: Option<(TcpListener, String)>,
        tag: bool,
    ) -> io::Result<(Self, Option<PipeReader>)> {
        let (tags, passed_on) = tag.then(Tags::begin).transpose()?.unzip();
        Ok((Desk { listener, tags }, passed_on))
    }

    /// A process's streams are passed on with tags.
    pub(super) fn tag(&mut self, rank: lpf::Pid, streams: [(Standard, Option<OwnedFd>); 2]) {
        let Some(tags) = &mut self.tags else { return };
        for (stream, pipe) in streams {
            if let Some(pipe) = pipe {
                tags.add(rank, stream, pipe);
            }
        }
    }

    /// Hands process 0 its socket.
    pub(super) fn hand_listener(&self, meet: &str, asked: &OwnedFd) {
        let listener = self.listener.as_ref().filter(|(_, address)| address == meet);
        let listener = listener.map(|(listener, _)| listener.as_fd());
        // Who has asked may be gone.
        let _ = answer(asked, [listener, None, None]);
    }

    /// Hands a shepherd the streams of its process: those of this program, which the process uses as if this
    /// program had started it. A launcher of MPI would read standard input before any process does, and loses
    /// what cannot be written. It passes on what comes from a terminal and goes there: its processes are
    /// in the background, where the terminal would stop them.
    pub(super) fn hand_streams(&mut self, rank: lpf::Pid, asked: &OwnedFd) -> io::Result<()> {
        let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
        let input = Some(input.as_fd()).filter(|_| rank == 0 && !input.is_terminal());
        if self.tags.is_none() {
            let output = Some(output.as_fd()).filter(|_| !output.is_terminal());
            let errors = Some(errors.as_fd()).filter(|_| !errors.is_terminal());
            return answer(asked, [input, output, errors]);
        }
        let ((from_output, output), (from_errors, errors)) = (io::pipe()?, io::pipe()?);
        answer(asked, [input, Some(output.as_fd()), Some(errors.as_fd())])?;
        let streams = [(Standard::Output, from_output), (Standard::Errors, from_errors)];
        self.tag(rank, streams.map(|(stream, pipe)| (stream, Some(pipe.into()))));
        Ok(())
    }

    /// Process 0 has ended: the others are not to wait for it at its socket.
    pub(super) fn close_listener(&mut self) {
        self.listener = None;
    }

    /// No more streams are to come.
    pub(super) fn close_tags(&mut self) {
        self.tags = None;
    }
}
