//! The tables that `lpf probe` saves: one file per host, with g and l by backend and number of
//! processes.
//!
//! The file is `lpf/<host>.json` in the user's data folder (`$XDG_DATA_HOME`, else
//! `~/.local/share`), or `<host>.json` in the folder that `LPF_TABLE` names. It is replaced in one
//! step, so that an interrupted `probe` leaves the old one intact. A table that is damaged or from
//! another machine is reported once on standard error, and numbers are guessed instead.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use lpf_core::Pid;
use lpf_core::machine::{Parameters, Row};
use lpf_core::settings::Exchange;
use lpf_core::settings::MAX_PROCS;

use crate::host::{Host, UNKNOWN_CPU};
use crate::launcher::say;

/// The layout of the file; another number is another program's.
const FORMAT: u32 = 1;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The backend's name, as `LPF_BACKEND` takes it.
    pub backend: String,
    /// When it was measured, seconds since 1970 (UTC).
    pub measured_unix_s: u64,
    /// Whether fewer bytes were moved than the method requires.
    pub quick: bool,
    /// The faster first exchange between the processes of a job, if both were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
    /// g and l.
    pub parameters: Parameters,
}

impl Table {
    /// A table measured now.
    pub fn now(backend: &str, quick: bool, parameters: Parameters) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let (backend, exchange) = (backend.into(), None);
        Table { backend, measured_unix_s: now, quick, exchange, parameters }
    }

    /// The faster first exchange for `p` processes, if it was measured for exactly this number.
    pub fn exchange_for(&self, p: Pid) -> Option<Exchange> {
        self.exchange.filter(|_| self.parameters.p == p)
    }

    fn is_for(&self, backend: &str, p: Pid) -> bool {
        self.backend == backend && self.parameters.p == p
    }
}

/// A host's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct File {
    format: u32,
    host: String,
    cpu: String,
    tables: Vec<Table>,
}

impl File {
    /// The file that a text is, or why it is none.
    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text)
            .map_err(|error| format!("it is damaged: {}", damage(text, &error)))?;
        if file.format != FORMAT {
            return Err(format!("it has format {}, not {FORMAT}", file.format));
        }
        match file.tables.iter().find(|table| !is_possible(&table.parameters)) {
            Some(Table { backend, parameters, .. }) => {
                let whose = format!("for {backend} with p = {}", parameters.p);
                Err(match parameters.rows.is_empty() {
                    true => format!("it is damaged: the numbers {whose} are missing"),
                    false if parameters.p > MAX_PROCS => {
                        format!(
                            "it is damaged: it has numbers {whose}, and {MAX_PROCS} is the most"
                        )
                    }
                    false => format!("it is damaged: the numbers {whose} are impossible"),
                })
            }
            None => Ok(file),
        }
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

/// What stands in a file of tables: one that is longer than any of them is another one, or has no end.
fn text(path: &Path) -> io::Result<String> {
    const MOST: u64 = 64 << 20;
    let mut text = String::new();
    let read = fs::File::open(path)?.take(MOST).read_to_string(&mut text)?;
    match read as u64 == MOST {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than any table")),
        false => Ok(text),
    }
}

/// The tables in a file, measured on any machine.
///
/// # Errors
/// Why the file cannot be used, in a plain sentence.
pub fn read(path: &Path) -> Result<Vec<Table>, String> {
    if path.is_dir() {
        return Err("it is a folder".into());
    }
    let text = text(path).map_err(|error| unreadable(&error))?;
    Ok(File::parse(&text)?.tables)
}

/// The content of a host's file.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// There is no file.
    Nothing,
    /// These tables, which can be used.
    Tables(Vec<Table>),
    /// A file that cannot be used, and why, in a plain sentence.
    Unusable(String),
}

/// The outcome of saving a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is in the file.
    Replaced,
    /// The file has a better one for this backend and number of processes: this one was quick, or is much less precise.
    KeptBetter,
}

/// The tables of one host in one folder.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    host: Host,
}

impl Store {
    /// This host's tables, in the folder of the settings: `LPF_TABLE`, else the user's data folder.
    ///
    /// # Errors
    /// If neither is known (there is no home folder).
    pub fn this() -> io::Result<Self> {
        let folder = match std::env::var_os("LPF_TABLE").filter(|folder| !folder.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => etcetera::choose_base_strategy()
                .map_err(|error| io::Error::new(io::ErrorKind::NotFound, error.to_string()))?
                .data_dir()
                .join("lpf"),
        };
        Ok(Store::new(&folder, Host::this()))
    }

    /// A host's tables in `folder`.
    pub fn new(folder: &Path, host: Host) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = host.name.chars().map(plain).collect();
        Store { path: folder.join(format!("{name}.json")), host }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file.
    pub fn load(&self) -> Found {
        // A pipe of that name would be waited for.
        let is_file = fs::metadata(&self.path).map(|data| data.is_file());
        let read = match is_file {
            Err(_) if self.folder_is_none() => Err(self.no_folder()),
            Ok(false) => Err(io::Error::other("it is not a file")),
            _ => text(&self.path),
        };
        let text = match read {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Unusable(unreadable(&error)),
        };
        let file = match File::parse(&text) {
            Ok(file) => file,
            Err(reason) => return Found::Unusable(reason),
        };
        let is_cpu = file.cpu == self.host.cpu || !self.host.knows_cpu();
        if file.host != self.host.name || !is_cpu {
            let other = format!("{} ({})", file.host, file.cpu);
            return Found::Unusable(format!("it was measured on another machine, {other}"));
        }
        Found::Tables(file.tables)
    }

    /// The processor that the file names, if the file can be used.
    fn measured_cpu(&self) -> Option<String> {
        let file = File::parse(&text(&self.path).ok()?).ok()?;
        Some(file.cpu).filter(|cpu| cpu != UNKNOWN_CPU)
    }

    /// Puts a table into the file, in one step: other programs find the old file or the new one, also if this program is
    /// killed. A quick table does not replace a full one. No table replaces a much better one of its kind (a busy
    /// machine, a short measurement). A file that cannot be used is replaced.
    ///
    /// # Errors
    /// If the folder or the file cannot be written. *Invalid data* for a table that could not be used, for example one
    /// with g below 0. Also for a table of an unknown processor if the file has one of a known processor.
    pub fn save(&self, table: Table) -> io::Result<Saved> {
        if !is_possible(&table.parameters) {
            let text = "g or l is impossible because of noise: measure longer";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if let Some(cpu) = self.measured_cpu().filter(|_| !self.host.knows_cpu()) {
            let text = format!(
                "the processor of this machine is unknown (is /proc mounted?), and the file has tables of a known one ({cpu})"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut tables = match self.load() {
            Found::Tables(tables) => tables,
            Found::Nothing | Found::Unusable(_) => Vec::new(),
        };
        let (backend, p) = (&table.backend, table.parameters.p);
        let is_better = |old: &Table| {
            let better = match (old.quick, table.quick) {
                (false, true) => true,
                (true, false) => false,
                _ => is_worse(&table.parameters, &old.parameters),
            };
            old.is_for(backend, p) && better
        };
        if tables.iter().any(is_better) {
            return Ok(Saved::KeptBetter);
        }
        tables.retain(|old| !old.is_for(backend, p));
        tables.push(table);
        tables.sort_by(|a, b| (&a.backend, a.parameters.p).cmp(&(&b.backend, b.parameters.p)));
        let Host { name: host, cpu, .. } = self.host.clone();
        self.replace(&File { format: FORMAT, host, cpu, tables })?;
        Ok(Saved::Replaced)
    }

    /// Tests before an hour of measuring whether a table can be saved.
    ///
    /// # Errors
    /// If the folder or the file cannot be written.
    pub fn check_writable(&self) -> io::Result<()> {
        self.make_folder()?;
        if self.path.is_dir() {
            return Err(io::Error::other("a folder has its name"));
        }
        let temporary = self.temporary();
        fs::File::create(&temporary)?;
        fs::remove_file(&temporary)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Whether something else has the folder's name.
    fn folder_is_none(&self) -> bool {
        fs::metadata(self.folder()).is_ok_and(|data| !data.is_dir())
    }

    fn no_folder(&self) -> io::Error {
        io::Error::other(format!("{} is not a folder", self.folder().display()))
    }

    fn temporary(&self) -> PathBuf {
        self.path.with_extension(format!("json.{}.tmp", std::process::id()))
    }

    fn make_folder(&self) -> io::Result<()> {
        match self.folder_is_none() {
            true => Err(self.no_folder()),
            false => fs::create_dir_all(self.folder()).map_err(|error| {
                let folder = self.folder().display();
                io::Error::new(error.kind(), format!("the folder {folder} cannot be made: {error}"))
            }),
        }
    }

    fn replace(&self, file: &File) -> io::Result<()> {
        self.make_folder()?;
        let temporary = self.temporary();
        let write = || {
            let mut new = fs::File::create(&temporary)?;
            new.write_all(serde_json::to_string_pretty(file)?.as_bytes())?;
            new.write_all(b"\n")?;
            // On the disk before it gets the name, or a crash may leave the name without content.
            new.sync_all()?;
            fs::rename(&temporary, &self.path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&temporary)))
    }
}

/// Half an interval as a share of its value, 1 at most: above, nothing is known.
fn shares(row: &Row) -> [f64; 2] {
    [row.g_ci95 / row.g_ns_per_byte, row.l_ci95 / row.l_ns].map(|share| share.clamp(0.0, 1.0))
}

/// Up to this share of its value a number is good enough to replace one that is better known.
const GOOD: f64 = 0.1;

/// Whether g or l of any word size that both have is much less certain in `new` than in `old`: its
/// interval is more than twice as wide, relative to its value, and more than 10 % of it. Each word
/// size counts for itself: one that nobody can measure would hide what became of the others.
fn is_worse(new: &Parameters, old: &Parameters) -> bool {
    new.rows.iter().any(|row| {
        let Some(before) = old.rows.iter().find(|before| before.word_bytes == row.word_bytes)
        else {
            return false;
        };
        let much_wider = |(now, before): (f64, f64)| now > GOOD && now > 2.0 * before;
        shares(row).into_iter().zip(shares(before)).any(much_wider)
    })
}

/// What no machine takes, nanoseconds (per byte, for r and g): a quarter of an hour.
const ABSURD: f64 = 1e12;

/// Whether numbers may come from a measurement.
fn is_possible(parameters: &Parameters) -> bool {
    let below = |value: f64| value < ABSURD;
    parameters.is_sound()
        && parameters.p <= MAX_PROCS
        && below(parameters.combine_ns_per_byte)
        && parameters
            .rows
            .iter()
            .all(|row| below(row.r_ns_per_byte) && below(row.g_ns_per_byte) && below(row.l_ns))
}

/// Where a file is damaged, for people: the line is there to read, and serde's words for what it
/// wanted are not theirs.
fn damage(text: &str, error: &serde_json::Error) -> String {
    let short = |line: &str| line.trim().chars().take(60).collect::<String>();
    let numbered = || text.lines().enumerate().take(error.line());
    // Where the text ends behind the end of a line, the line to show is the one before.
    let last = numbered().filter(|(_, line)| !line.trim().is_empty()).last();
    let (number, line) = match error.classify() {
        Category::Eof => last.map_or((0, ""), |(nth, line)| (nth + 1, line)),
        _ => (error.line(), numbered().nth(error.line().saturating_sub(1)).map_or("", |l| l.1)),
    };
    let line = short(line);
    let said = error.to_string();
    let missing = said.strip_prefix("missing field `").and_then(|said| said.split('`').next());
    match (error.classify(), missing) {
        (Category::Eof, _) if text.trim().is_empty() => "it is empty".into(),
        (Category::Eof, _) => format!("it ends in the middle, in line {number}: `{line}`"),
        (Category::Data, Some(field)) => {
            // In a file of one line serde has seen none of it when it misses the field.
            let before = if number > 1 { format!(" before line {number}") } else { String::new() };
            format!("the field \"{field}\" is missing{before}")
        }
        (Category::Data, None) => format!("line {number} has an unexpected value: `{line}`"),
        (Category::Syntax | Category::Io, _) => format!("line {number} is not JSON: `{line}`"),
    }
}

/// The saved parameters for `p` processes, or for the nearest number that has a [`table`].
pub fn parameters(backend: &str, p: Pid) -> Option<Parameters> {
    table(backend, p).map(|table| table.parameters)
}

/// The saved table for `p` processes, or for the nearest number that has one (by ratio; the
/// smaller of two equally near). A file that cannot be used is reported once on standard error.
pub fn table(backend: &str, p: Pid) -> Option<Table> {
    let store = Store::this().ok()?;
    match store.load() {
        Found::Nothing => None,
        Found::Unusable(reason) => {
            static SAID: AtomicBool = AtomicBool::new(false);
            if !SAID.swap(true, Ordering::Relaxed) {
                let path = store.path().display();
                say(&format!(
                    "the machine table {path} is not used: {reason}; g and l are a guess until lpf probe (in LPF's folder: cargo run --release -- probe) replaces it, or LPF_TABLE names another folder"
                ));
            }
            None
        }
        Found::Tables(tables) => nearest(tables, backend, p),
    }
}

/// The table of `tables` for `p` processes, or for the nearest number that has one, as [`table`].
pub fn nearest(tables: Vec<Table>, backend: &str, p: Pid) -> Option<Table> {
    let distance = |table: &Table| (table.parameters.p as f64 / p as f64).ln().abs();
    tables
        .into_iter()
        .filter(|table| table.backend == backend)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lpf_core::machine::{Growth, Origin};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("lpf-{name}-{}", std::process::id()));
            drop(fs::remove_dir_all(&path));
            Folder(path)
        }

        fn store(&self) -> Store {
            self.store_of("cpu")
        }

        fn store_of(&self, cpu: &str) -> Store {
            let (name, cpu) = ("a host/with\\odd name".into(), cpu.into());
            Store::new(
                &self.0,
                Host { name, cpu, memory_bytes: 1 << 30, last_cache_bytes: 1 << 20 },
            )
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    fn table(p: Pid, quick: bool, l_ns: f64) -> Table {
        let mut parameters = Parameters::guess(Growth::SharedMemory);
        parameters.p = p;
        parameters.origin = Origin::Measured;
        parameters.rows[0].l_ns = l_ns;
        Table::now("threads", quick, parameters)
    }

    #[test]
    fn a_processor_that_the_system_does_not_tell_keeps_the_table_of_one_that_it_told() {
        let folder = Folder::new("unknown-cpu");
        let (known, unknown) = (folder.store_of("cpu"), folder.store_of(UNKNOWN_CPU));
        assert_eq!(unknown.save(table(2, false, 900.0)).unwrap(), Saved::Replaced, "none is there");
        assert!(matches!(known.load(), Found::Unusable(_)));
        assert_eq!(known.save(table(2, false, 700.0)).unwrap(), Saved::Replaced);
        let error = unknown.save(table(2, false, 1.0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("is /proc mounted?"), "{error}");
        let Found::Tables(tables) = unknown.load() else { panic!("it can be used") };
        assert_eq!(tables, [table(2, false, 700.0)]);
        assert!(matches!(folder.store_of("another").load(), Found::Unusable(_)));
    }

    #[test]
    fn what_was_saved_is_found() {
        let folder = Folder::new("saved");
        let store = folder.store();
        assert_eq!(store.load(), Found::Nothing);
        assert_eq!(store.save(table(4, false, 1.5)).unwrap(), Saved::Replaced);
        assert_eq!(store.save(table(2, true, 2.5)).unwrap(), Saved::Replaced);
        let Found::Tables(tables) = store.load() else { panic!("{:?}", store.load()) };
        let found: Vec<_> = tables.iter().map(|t| (t.parameters.p, t.quick)).collect();
        assert_eq!(found, [(2, true), (4, false)]);
        assert_eq!(tables[1].parameters.rows[0].l_ns, 1.5);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_quick_table_never_replaces_a_better_one() {
        let folder = Folder::new("quick");
        let store = folder.store();
        store.save(table(2, true, 1.0)).unwrap();
        store.save(table(2, true, 2.0)).unwrap();
        assert_eq!(store.save(table(2, false, 3.0)).unwrap(), Saved::Replaced);
        assert_eq!(store.save(table(2, true, 4.0)).unwrap(), Saved::KeptBetter);
        assert_eq!(store.save(table(8, true, 5.0)).unwrap(), Saved::Replaced);
        let Found::Tables(tables) = store.load() else { panic!() };
        assert_eq!(tables[0].parameters.rows[0].l_ns, 3.0);
        assert_eq!(tables.len(), 2);
    }

    #[test]
    fn a_much_narrower_table_is_kept_when_a_worse_measurement_comes() {
        let folder = Folder::new("narrower");
        let store = folder.store();
        let within = |share: f64, l_ns: f64| {
            let mut table = table(2, false, l_ns);
            for row in &mut table.parameters.rows {
                (row.g_ci95, row.l_ci95) = (share * row.g_ns_per_byte, share * row.l_ns);
            }
            table
        };
        store.save(within(0.1, 1.0)).unwrap();
        assert_eq!(store.save(within(0.21, 2.0)).unwrap(), Saved::KeptBetter);
        let Found::Tables(tables) = store.load() else { panic!() };
        assert_eq!(tables[0].parameters.rows[0].l_ns, 1.0);
        // One nearly as good is newer, and so is one for another number of processes.
        assert_eq!(store.save(within(0.19, 3.0)).unwrap(), Saved::Replaced);
        assert_eq!(store.save(within(0.02, 3.0)).unwrap(), Saved::Replaced);
        assert_eq!(store.save(within(0.09, 3.0)).unwrap(), Saved::Replaced, "good enough");
        assert_eq!(
            store.save(Table { quick: true, ..within(0.01, 4.0) }).unwrap(),
            Saved::KeptBetter
        );
        assert_eq!(store.save(table(4, false, 5.0)).unwrap(), Saved::Replaced);
    }

    #[test]
    fn a_word_size_that_nobody_can_measure_does_not_hide_the_others() {
        let folder = Folder::new("hidden");
        let store = folder.store();
        let with = |first: f64, others: f64| {
            let mut table = table(2, false, 1.0);
            for (row, share) in table.parameters.rows.iter_mut().zip([first, others, others, 0.01])
            {
                (row.g_ci95, row.l_ci95) = (share * row.g_ns_per_byte, 0.01 * row.l_ns);
            }
            table
        };
        store.save(with(1.0, 0.02)).unwrap();
        assert_eq!(store.save(with(1.0, 0.3)).unwrap(), Saved::KeptBetter);
        assert_eq!(store.save(with(7.0, 0.02)).unwrap(), Saved::Replaced, "no worse than unknown");
        assert_eq!(store.save(with(0.1, 0.02)).unwrap(), Saved::Replaced);
        let quick = |first| Table { quick: true, ..with(first, 0.02) };
        drop(fs::remove_file(store.path()));
        store.save(quick(0.1)).unwrap();
        assert_eq!(store.save(quick(0.5)).unwrap(), Saved::KeptBetter);
        assert_eq!(store.save(with(0.5, 0.02)).unwrap(), Saved::Replaced);
    }

    #[test]
    fn a_table_of_before_combining_was_measured_has_a_guess_of_it() {
        let folder = Folder::new("combining");
        let store = folder.store();
        store.save(table(2, false, 1.0)).unwrap();
        let text = fs::read_to_string(store.path()).unwrap();
        let end = text.find("\"combine_ns_per_byte\"").unwrap();
        let (before, after) = (text[..end].trim_end().trim_end_matches(','), &text[end..]);
        let older = format!("{before}{}", &after[after.find('}').unwrap()..]);
        fs::write(store.path(), older).unwrap();
        match store.load() {
            Found::Tables(tables) => assert_eq!(tables[0].parameters.combine_ns_per_byte, 0.1),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn impossible_numbers_are_not_saved() {
        let folder = Folder::new("impossible");
        let store = folder.store();
        store.save(table(2, false, 1.0)).unwrap();
        for l_ns in [-1.0, 1e300] {
            let error = store.save(table(2, false, l_ns)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        assert!(matches!(store.load(), Found::Tables(tables) if tables.len() == 1));
    }

    #[test]
    fn a_damaged_or_foreign_file_is_not_used_and_is_replaced() {
        let folder = Folder::new("damaged");
        let store = folder.store();
        store.save(table(2, false, 1.0)).unwrap();
        let good = fs::read_to_string(store.path()).unwrap();
        let foreign = good.replace("\"cpu\": \"cpu\"", "\"cpu\": \"another\"");
        let impossible = good.replace("\"l_ns\": 1.0", "\"l_ns\": -1.0");
        let absurd = good.replace("\"l_ns\": 1.0", "\"l_ns\": 1e300");
        let too_many = good.replace("\"p\": 2", "\"p\": 65537");
        let middle: String = good.lines().take(15).map(|line| format!("{line}\n")).collect();
        let last = good.lines().nth(14).unwrap().trim();
        let newer = good.replace("\"format\": 1", "\"format\": 2");
        let word = good.replace("\"l_ns\": 1.0", "\"l_ns\": \"soon\"");
        let line = good.lines().position(|line| line.contains("\"l_ns\": 1.0")).unwrap() + 1;
        let no_field = good.replacen("\"l_ns\": 1.0,", "", 1);
        let rows = good.find("\"rows\": [").unwrap() + "\"rows\": [".len();
        let end = rows + good[rows..].find(']').unwrap();
        let no_rows = format!("{}{}", &good[..rows], &good[end..]);
        let no_json = good.replace("\"l_ns\": 1.0", "l_ns 1.0");
        let cases = [
            (&good[..good.len() / 2], "damaged: it ends in the middle, in line "),
            ("", "damaged: it is empty"),
            (&word, &*format!("line {line} has an unexpected value: `\"l_ns\": \"soon\",`")),
            (&no_field, "the field \"l_ns\" is missing before line "),
            (&no_json, &*format!("line {line} is not JSON: `l_ns 1.0,`")),
            (&foreign, "another machine"),
            (&impossible, "impossible"),
            (&no_rows, "the numbers for threads with p = 2 are missing"),
            ("{}", "damaged: the field \"format\" is missing"),
            (&absurd, "impossible"),
            (&too_many, "it has numbers for threads with p = 65537, and 65536 is the most"),
            (&middle, &*format!("it ends in the middle, in line 15: `{last}`")),
            (&newer, "format 2"),
        ];
        for (text, reason) in cases {
            fs::write(store.path(), text).unwrap();
            match store.load() {
                Found::Unusable(said) => {
                    assert!(said.contains(reason) && !said.ends_with("before line 1"), "{said}");
                }
                other => panic!("{reason}: {other:?}"),
            }
        }
        store.save(table(2, true, 1.0)).unwrap();
        assert!(matches!(store.load(), Found::Tables(tables) if tables.len() == 1));
    }

    #[test]
    fn the_nearest_number_of_processes_is_taken() {
        let tables = || vec![table(2, false, 2.0), table(8, false, 8.0)];
        let nearest_p = |p| nearest(tables(), "threads", p).map(|found| found.parameters.p);
        assert_eq!([1, 2, 3, 4, 5, 100].map(nearest_p), [2, 2, 2, 2, 8, 8].map(Some));
        assert_eq!(nearest(tables(), "mpi", 2), None);
        let table = Table { exchange: Some(Exchange::Bruck), ..table(8, false, 1.0) };
        assert_eq!((table.exchange_for(8), table.exchange_for(9)), (Some(Exchange::Bruck), None));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_no_panic() {
        let folder = Folder::new("unwritable");
        fs::write(&folder.0, "a file where the folder should be").unwrap();
        assert!(folder.store().save(table(2, false, 1.0)).is_err());
        let said = folder.store().check_writable().unwrap_err().to_string();
        assert!(said.ends_with("is not a folder"), "{said}");
        match folder.store().load() {
            Found::Unusable(said) => assert!(said.ends_with("is not a folder"), "{said}"),
            other => panic!("{other:?}"),
        }
        fs::remove_file(&folder.0).unwrap();
    }
}
