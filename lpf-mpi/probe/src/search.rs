//! Asks the MPI's compiler, else pkg-config, how programs are built with it.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Which of these are set decides where MPI is found.
const VARIABLES: [&str; 4] = ["MPICC", "MPI_PKG_CONFIG", "CRAY_MPICH_DIR", "PKG_CONFIG_PATH"];

/// How programs are built with MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The compiler that adds all of this by itself, if the library was found by it.
    pub mpicc: Option<String>,
    /// Libraries to link.
    pub libs: Vec<String>,
    /// Folders of the libraries.
    pub lib_paths: Vec<PathBuf>,
    /// Folders of the headers.
    pub include_paths: Vec<PathBuf>,
    /// Name and version of the MPI, if known.
    pub version: String,
}

/// Looks where `MPI_PKG_CONFIG` or `CRAY_MPICH_DIR` says, then for the compiler `MPICC` or `mpicc`, then
/// for the packages of MPICH and Open MPI.
///
/// # Errors
/// The attempts that failed.
pub fn probe() -> Result<Library, Vec<Box<dyn Error>>> {
    for name in VARIABLES {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if let Ok(named) = env::var("MPI_PKG_CONFIG") {
        return package(&named).map_err(|error| vec![error]);
    }
    let mut tried = Vec::new();
    let mut note = |error| tried.push(error);
    if let Ok(folder) = env::var("CRAY_MPICH_DIR") {
        match package(&format!("{folder}/lib/pkgconfig/mpich.pc")) {
            Ok(found) => return Ok(found),
            Err(error) => note(error),
        }
    }
    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    match compiler(mpicc) {
        Ok(found) => return Ok(found),
        Err(error) => note(error),
    }
    for name in ["mpich", "ompi"] {
        match package(name) {
            Ok(found) => return Ok(found),
            Err(error) => note(error),
        }
    }
    Err(tried)
}

/// What a program prints, if it ends well.
fn printed(program: &str, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} {}: {}", arguments.join(" "), why.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn compiler(mpicc: String) -> Result<Library, Box<dyn Error>> {
    // It may be there without the headers.
    printed(&mpicc, &["-E", "-include", "mpi.h", "-x", "c", "/dev/null"])?;
    let mut found = Library::of_flags(&printed(&mpicc, &["-show"])?);
    found.mpicc = Some(mpicc);
    Ok(found)
}

fn package(name: &str) -> Result<Library, Box<dyn Error>> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let mut found = Library::of_flags(&printed(&program, &["--cflags", "--libs", name])?);
    found.version = printed(&program, &["--modversion", name])?.trim().into();
    Ok(found)
}

impl Library {
    /// What flags of a compiler say.
    fn of_flags(text: &str) -> Self {
        let words = words(text);
        let flags = |flag: &str| {
            let mut found = Vec::new();
            let mut rest = words.iter();
            while let Some(word) = rest.next() {
                match word.strip_prefix(flag) {
                    // Its value may be the next word.
                    Some("") => found.extend(rest.next().cloned()),
                    Some(value) => found.push(value.into()),
                    None => {}
                }
            }
            found
        };
        let folders = |flag: &str| flags(flag).into_iter().map(PathBuf::from).collect();
        Library {
            mpicc: None,
            libs: flags("-l"),
            lib_paths: folders("-L"),
            include_paths: folders("-I"),
            version: "unknown".into(),
        }
    }
}

/// The words of a line as a shell takes them apart, quotes and all.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, _) if letter.is_whitespace() => all.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_taken_apart_as_a_shell_does() {
        let found = Library::of_flags(
            r#"gcc -I"/opt/My MPI/include" '-I/b' -L /opt/My\ MPI/lib -L/c -pthread -lmpi -l rt
            -Wl,-z,relro"#,
        );
        assert_eq!(found.include_paths, [PathBuf::from("/opt/My MPI/include"), "/b".into()]);
        assert_eq!(found.lib_paths, [PathBuf::from("/opt/My MPI/lib"), "/c".into()]);
        assert_eq!(found.libs, ["mpi", "rt"]);
    }

    #[test]
    fn an_empty_line_says_nothing() {
        let found = Library::of_flags("\n");
        assert!(found.libs.is_empty() && found.lib_paths.is_empty());
        assert_eq!(words(r#"a "" b"#), ["a", "", "b"]);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let error = compiler("no-such-mpicc".into()).unwrap_err().to_string();
        assert!(error.starts_with("no-such-mpicc: "), "{error}");
        let error = printed("false", &["-x"]).unwrap_err().to_string();
        assert_eq!(error, "false -x: ");
    }
}
