//! An instance in a file: one JSON object.

use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};
use crate::given::{text, whole};
use crate::output::named;

/// The fields of an instance, by name.
pub(super) struct Fields<'a> {
    path: &'a Path,
    object: Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Of a file.
    pub(super) fn read(path: &'a Path) -> Result<Self> {
        let shown = named(path.display());
        let text = text("--instance", path, "one JSON object, { ... }")?;
        match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Ok(Fields { path, object }),
            Ok(_) => {
                Err(Failure::Usage(format!("--instance {shown} is not a JSON object, {{ ... }}")))
            }
            Err(error) => Err(Failure::Usage(format!("--instance {shown} is not JSON: {error}"))),
        }
    }

    /// What is wrong with it, for people.
    pub(super) fn wrong(&self, what: &str) -> Failure {
        let path = self.path.display();
        Failure::Usage(named(format!("--instance {path} cannot be used: {what}")))
    }

    fn field(&self, name: &str) -> Result<&Value> {
        self.object.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.object.keys().map(String::as_str).collect();
            self.wrong(&match names.is_empty() {
                true => format!("it has no {name}; it is empty"),
                false => format!("it has no {name}; it has {}", names.join(", ")),
            })
        })
    }

    fn whole(&self, name: &str, value: &Value) -> Result<u64> {
        whole(name, value).map_err(|text| self.wrong(&text))
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Result<u64> {
        self.whole(name, self.field(name)?)
    }

    /// A whole number of 1 to 2^32 - 1.
    pub(super) fn count(&self, name: &str) -> Result<u32> {
        let number = self.number(name)?;
        u32::try_from(number).ok().filter(|&number| number > 0).ok_or_else(|| {
            self.wrong(&format!("{name} is {number}; it has to be from 1 to {}", u32::MAX))
        })
    }

    /// A whole number for each of P processes.
    pub(super) fn times(&self, name: &str) -> Result<Vec<u64>> {
        let p = self.count("P")? as usize;
        let list = self.field(name)?;
        let Value::Array(list) = list else {
            return Err(self.wrong(&format!("{name} is not a list of numbers, [ ... ]")));
        };
        if list.len() != p {
            let text = format!("{name} has {} times for P = {p} processes", list.len());
            return Err(self.wrong(&text));
        }
        let times = list.iter().enumerate();
        times.map(|(nth, value)| self.whole(&format!("{name}[{nth}]"), value)).collect()
    }
}
