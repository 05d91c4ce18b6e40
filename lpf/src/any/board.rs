//! The board of programs: that of the engine inside.

use std::time::Duration;

use lpf_control::plane::ControlBoard;
use lpf_core::board::{Board, MemoryBoard, Record, Topic};
use lpf_core::{Pid, Result};
use lpf_hybrid::HybridBoard;

/// The board of any engine: that of threads, or that of the control plane.
#[derive(Clone, Debug)]
pub enum AnyBoard {
    /// Shared memory.
    Threads(MemoryBoard),
    /// Messages over the control plane.
    Control(ControlBoard),
}

impl From<MemoryBoard> for AnyBoard {
    fn from(board: MemoryBoard) -> Self {
        AnyBoard::Threads(board)
    }
}

impl From<ControlBoard> for AnyBoard {
    fn from(board: ControlBoard) -> Self {
        AnyBoard::Control(board)
    }
}

impl From<HybridBoard<ControlBoard>> for AnyBoard {
    fn from(board: HybridBoard<ControlBoard>) -> Self {
        match board {
            HybridBoard::Inside(board) => board.into(),
            HybridBoard::Between(board) => board.into(),
        }
    }
}

macro_rules! on_board {
    ($any:expr, $board:ident => $result:expr) => {
        match $any {
            AnyBoard::Threads($board) => $result,
            AnyBoard::Control($board) => $result,
        }
    };
}

impl Board for AnyBoard {
    fn max_record(&self) -> usize {
        on_board!(self, board => board.max_record())
    }

    fn is_in_one_process(&self) -> bool {
        on_board!(self, board => board.is_in_one_process())
    }

    fn now(&self) -> Duration {
        on_board!(self, board => board.now())
    }

    fn write(&self, topic: Topic, record: &[u8]) -> Result<()> {
        on_board!(self, board => board.write(topic, record))
    }

    fn read(&self, from: Pid, topic: Topic) -> Result<Option<Record>> {
        on_board!(self, board => board.read(from, topic))
    }

    fn read_all(&self, topic: Topic) -> Result<Vec<Option<Record>>> {
        on_board!(self, board => board.read_all(topic))
    }

    fn agree(&self, topic: Topic, record: &[u8]) -> Result<bool> {
        on_board!(self, board => board.agree(topic, record))
    }

    fn agreed(&self, topic: Topic) -> Result<Option<Vec<u8>>> {
        on_board!(self, board => board.agreed(topic))
    }
}
