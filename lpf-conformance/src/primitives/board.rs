//! The board: registers beside the context, readable at any time, also by helper threads.

use lpf_core::board::{Board, Topic};
use lpf_core::{Context, Error, Lpf, Pid, Result};

use crate::verdict::{assert_fatal_naming, failing_rehook, refused, room, wait_for};

/// Waits until process `from` has written version `version` of `topic`, and gives its bytes.
pub(super) fn await_version<B: Board>(board: &B, from: Pid, topic: Topic, version: u64) -> Vec<u8> {
    wait_for("a record of the board", || {
        let record = board.read(from, topic).expect("the process exists");
        record.filter(|record| record.version >= version).map(|record| record.bytes)
    })
}

/// The board of a context.
pub(crate) fn board<L: Lpf>(ctx: &mut Context<'_, L>) -> L::Board {
    ctx.raw().board()
}

case! {
    /// A record is readable by everybody at any time; a topic holds each sender's latest.
    pub fn a_record_is_read_by_everybody_and_the_latest_counts everywhere [1, 2, 4] |ctx| {
        let board = board(ctx);
        let (me, p) = (ctx.pid(), ctx.nprocs());
        for from in 0..p {
            assert_eq!(board.read(from, Topic(70))?, None, "nobody wrote yet");
        }
        ctx.sync()?;
        for version in 1..=5u8 {
            board.write(Topic(70), &[version, me as u8])?;
        }
        board.write(Topic(71), &[])?;
        for from in 0..p {
            assert_eq!(await_version(&board, from, Topic(70), 5), [5, from as u8]);
            assert!(await_version(&board, from, Topic(71), 1).is_empty());
        }
        let all = board.read_all(Topic(70))?;
        assert_eq!(all.len(), p);
        for (from, record) in all.into_iter().enumerate() {
            let record = record.expect("all have written");
            assert_eq!((record.version, record.bytes), (5, vec![5, from as u8]));
        }
        assert!(board.read_all(Topic(72))?.iter().all(Option::is_none));
        refused!(board.read(p, Topic(70)), Misuse, NoSuchProcess { .. });
        ctx.sync()?;
    }
}

case! {
    /// A record has at most 8p + 64 bytes.
    pub fn a_record_is_bounded everywhere [1, 3] |ctx| {
        let board = board(ctx);
        let most = 8 * ctx.nprocs() + 64;
        assert_eq!(board.max_record(), most);
        board.write(Topic(80), &vec![1; most])?;
        let error = board.write(Topic(80), &vec![2; most + 1]).expect_err("a longer record");
        assert!(error.is_misuse(), "{error}");
        let error = board.agree(Topic(81), &vec![2; most + 1]).expect_err("a longer record");
        assert!(error.is_misuse(), "{error}");
        assert_eq!(await_version(&board, ctx.pid(), Topic(80), 1), vec![1; most]);
        ctx.sync()?;
    }
}

case! {
    /// Whoever writes the first record closes the agreement; every process fetches it once.
    pub fn the_first_record_of_an_agreement_stands_for_all everywhere [1, 2, 4] |ctx| {
        let board = board(ctx);
        let p = ctx.nprocs();
        room(ctx, 2, 2 * p)?;
        let (mut mine, all) = (ctx.local::<usize>(2)?, ctx.area::<usize>(2 * p)?);
        ctx.sync()?;
        for topic in (90..100).map(Topic) {
            if topic.0 == 90 {
                assert_eq!(board.agreed(topic)?, None, "nothing is agreed yet");
                ctx.sync()?;
            }
            let first = board.agree(topic, &ctx.pid().to_le_bytes())?;
            let agreed = wait_for("an agreement", || board.agreed(topic).expect("no failure"));
            let agreed = Pid::from_le_bytes(agreed.try_into().expect("the bytes of a number"));
            assert_eq!(board.agreed(topic)?, None, "it is fetched once");
            ctx.write(&mut mine).copy_from_slice(&[usize::from(first), agreed]);
            for to in 0..ctx.nprocs() {
                ctx.put(&mine, .., to, &all, 2 * ctx.pid())?;
            }
            ctx.sync()?;
            let all = ctx.read(&all);
            let winners: Vec<_> = (0..p).filter(|&pid| all[2 * pid] == 1).collect();
            assert_eq!(winners, [agreed], "one process closes it");
            assert!((0..p).all(|pid| all[2 * pid + 1] == agreed), "all fetch the same: {all:?}");
            ctx.sync()?;
        }
    }
}

/// Process 0 waits in a full sync while its helper thread answers what others write.
fn answer_from_a_helper<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let board = board(ctx);
    let (question, answer) = (Topic(110), Topic(111));
    let last = ctx.nprocs() - 1;
    if ctx.pid() == 0 {
        let helper = board.clone();
        return std::thread::scope(|scope| {
            let helper = scope.spawn(move || {
                let asked = await_version(&helper, last, question, 1);
                helper.write(answer, &[asked[0] + 1])
            });
            let synced = ctx.sync();
            helper.join().expect("the helper does not panic")?;
            synced
        });
    }
    if ctx.pid() == last {
        // By now process 0 waits; the sync cannot end before this process joins it.
        std::thread::sleep(std::time::Duration::from_millis(20));
        board.write(question, &[41])?;
        assert_eq!(await_version(&board, 0, answer, 1), [42]);
    }
    ctx.sync()
}

case! {
    /// Handles work in any thread, whatever the context does meanwhile.
    pub fn a_helper_thread_uses_the_board_while_its_process_waits everywhere [2, 4] |ctx| {
        answer_from_a_helper(ctx)?;
    }
}

case! {
    /// The board of a failed section reports the failure, also to a process that makes no sync.
    pub fn the_board_of_a_failed_section_is_fatal everywhere [2, 3] |ctx| {
        let last = ctx.nprocs() - 1;
        let (_, error) = failing_rehook(ctx, |inner| {
            let board = board(inner);
            inner.sync()?;
            if inner.pid() == last {
                return Err(Error::program("on purpose"));
            }
            let error = wait_for("the failure", || board.read(last, Topic(120)).err());
            assert_fatal_naming(&error, &[last]);
            refused!(board.write(Topic(120), &[1]), Fatal, Returned { .. });
            refused!(board.read_all(Topic(120)), Fatal, Returned { .. });
            refused!(board.agreed(Topic(121)), Fatal, Returned { .. });
            Ok(())
        });
        if ctx.pid() != last {
            assert_fatal_naming(&error, &[last]);
        }
    }
}
