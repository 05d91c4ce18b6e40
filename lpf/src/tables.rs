//! The tables that `lpf probe` saves: one file per host, with g and l by backend and number of
//! processes.
//!
//! The file is `lpf/<host>.json` in the user's data folder (`$XDG_DATA_HOME`, else
//! `~/.local/share`), or `<host>.json` in the folder that `LPF_TABLE` names. It is replaced in one
//! step, so that an interrupted `probe` leaves the old one whole. A table that is damaged or from
//! another machine is said once on standard error, and numbers are measured or guessed instead.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{SystemTime, UNIX_EPOCH};

use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};

use lpf_core::Pid;
use lpf_core::machine::Parameters;

use crate::host::Host;

/// The layout of the file; another number is another program's.
const FORMAT: u32 = 1;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The backend's name, as `LPF_BACKEND` takes it.
    pub backend: String,
    /// When it was measured, seconds since 1970 (UTC).
    pub measured_unix_s: u64,
    /// Whether less was moved than the method asks for.
    pub quick: bool,
    /// g and l.
    pub parameters: Parameters,
}

impl Table {
    /// A table measured now.
    pub fn now(backend: &str, quick: bool, parameters: Parameters) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Table { backend: backend.into(), measured_unix_s: now, quick, parameters }
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

/// What stands in a host's file.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// There is no file.
    Nothing,
    /// These tables, which can be used.
    Tables(Vec<Table>),
    /// A file that cannot be used, and why, in a plain sentence.
    Unusable(String),
}

/// What became of a table that was to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is in the file.
    Replaced,
    /// The file has a better one for this backend and number of processes: this one was quick.
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
    /// Where neither is known (no home folder).
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
            Ok(false) => Err(io::Error::other("it is no file")),
            _ => fs::read_to_string(&self.path),
        };
        let text = match read {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Unusable(format!("it cannot be read: {error}")),
        };
        let file: File = match serde_json::from_str(&text) {
            Ok(file) => file,
            Err(error) => return Found::Unusable(format!("it is damaged: {error}")),
        };
        if file.format != FORMAT {
            return Found::Unusable(format!("it has format {}, not {FORMAT}", file.format));
        }
        if (file.host.as_str(), file.cpu.as_str()) != (&self.host.name, &self.host.cpu) {
            let other = format!("{} ({})", file.host, file.cpu);
            return Found::Unusable(format!("it was measured on another machine, {other}"));
        }
        match file.tables.iter().find(|table| !table.parameters.is_sound()) {
            Some(table) => Found::Unusable(format!(
                "it is damaged: the numbers for {} with {} processes are impossible",
                table.backend, table.parameters.p
            )),
            None => Found::Tables(file.tables),
        }
    }

    /// Puts a table into the file, in one step: who reads meanwhile, or after this program was
    /// killed in the middle, finds the old file or the new one. A quick table does not replace a
    /// better one, nor does one whose intervals are more than twice as wide (a busy machine, a short
    /// measurement); a file that cannot be used is replaced.
    ///
    /// # Errors
    /// Where the folder or the file cannot be written.
    pub fn save(&self, table: Table) -> io::Result<Saved> {
        let mut tables = match self.load() {
            Found::Tables(tables) => tables,
            Found::Nothing | Found::Unusable(_) => Vec::new(),
        };
        let (backend, p) = (&table.backend, table.parameters.p);
        let is_better = |old: &Table| {
            let much_narrower = 2.0 * old.parameters.uncertainty() < table.parameters.uncertainty();
            old.is_for(backend, p) && !old.quick && (table.quick || much_narrower)
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

    /// Whether a table could be saved, found out before an hour of measuring and not after it.
    ///
    /// # Errors
    /// Where the folder or the file cannot be written.
    pub fn check_writable(&self) -> io::Result<()> {
        fs::create_dir_all(self.folder())?;
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

    fn temporary(&self) -> PathBuf {
        self.path.with_extension(format!("json.{}.tmp", std::process::id()))
    }

    fn replace(&self, file: &File) -> io::Result<()> {
        fs::create_dir_all(self.folder())?;
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

/// The saved parameters for `p` processes, or for the nearest number that there is a table for
/// (by ratio; the smaller of two equally near). A file that cannot be used is said once on
/// standard error.
pub fn parameters(backend: &str, p: Pid) -> Option<Parameters> {
    let store = Store::this().ok()?;
    match store.load() {
        Found::Nothing => None,
        Found::Unusable(reason) => {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                let path = store.path().display();
                eprintln!("lpf: the machine table {path} is not used: {reason}; run lpf probe");
            });
            None
        }
        Found::Tables(tables) => nearest(tables, backend, p),
    }
}

fn nearest(tables: Vec<Table>, backend: &str, p: Pid) -> Option<Parameters> {
    let distance = |table: &Table| (f64::from(table.parameters.p) / f64::from(p)).ln().abs();
    tables
        .into_iter()
        .filter(|table| table.backend == backend)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .map(|table| table.parameters)
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
            let (name, cpu) = ("a host/with\\odd name".into(), "cpu".into());
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
    fn a_damaged_or_foreign_file_is_not_used_and_is_replaced() {
        let folder = Folder::new("damaged");
        let store = folder.store();
        store.save(table(2, false, 1.0)).unwrap();
        let good = fs::read_to_string(store.path()).unwrap();
        let foreign = good.replace("\"cpu\": \"cpu\"", "\"cpu\": \"another\"");
        let impossible = good.replace("\"l_ns\": 1.0", "\"l_ns\": -1.0");
        let newer = good.replace("\"format\": 1", "\"format\": 2");
        let cases = [
            (&good[..good.len() / 2], "damaged"),
            ("", "damaged"),
            (&foreign, "another machine"),
            (&impossible, "impossible"),
            (&newer, "format 2"),
        ];
        for (text, reason) in cases {
            fs::write(store.path(), text).unwrap();
            match store.load() {
                Found::Unusable(said) => assert!(said.contains(reason), "{said}"),
                other => panic!("{reason}: {other:?}"),
            }
        }
        store.save(table(2, true, 1.0)).unwrap();
        assert!(matches!(store.load(), Found::Tables(tables) if tables.len() == 1));
    }

    #[test]
    fn the_nearest_number_of_processes_is_taken() {
        let tables = || vec![table(2, false, 2.0), table(8, false, 8.0)];
        let nearest_p = |p| nearest(tables(), "threads", p).map(|found| found.p);
        assert_eq!([1, 2, 3, 4, 5, 100].map(nearest_p), [2, 2, 2, 2, 8, 8].map(Some));
        assert_eq!(nearest(tables(), "mpi", 2), None);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_no_panic() {
        let folder = Folder::new("unwritable");
        fs::write(&folder.0, "a file where the folder should be").unwrap();
        assert!(folder.store().save(table(2, false, 1.0)).is_err());
        fs::remove_file(&folder.0).unwrap();
    }
}
