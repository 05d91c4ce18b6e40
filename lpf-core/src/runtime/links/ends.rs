//! What an engine keeps of each open link, beside the table.

use super::{LinkTable, OpenLink};

/// What an engine keeps of the open links of a process.
#[derive(Debug)]
pub struct Ends<T>(Vec<Option<T>>);

impl<T> Default for Ends<T> {
    fn default() -> Self {
        Ends(Vec::new())
    }
}

impl<T> Ends<T> {
    /// Of a link that was opened.
    pub fn add(&mut self, open: &OpenLink, end: T) {
        if open.number >= self.0.len() {
            self.0.resize_with(open.number + 1, || None);
        }
        self.0[open.number] = Some(end);
    }

    /// Of a link that was closed.
    pub fn remove(&mut self, open: &OpenLink) -> Option<T> {
        self.0.get_mut(open.number)?.take()
    }

    /// Of an open link, if the engine has added it: another engine may carry the link.
    #[inline]
    pub fn get(&self, open: &OpenLink) -> Option<&T> {
        self.0.get(open.number)?.as_ref()
    }

    /// Of an open link.
    ///
    /// # Panics
    /// If the engine has not added it.
    #[inline]
    pub fn of(&self, open: &OpenLink) -> &T {
        self.get(open).expect("an open link has its end")
    }

    /// As [`of`](Self::of).
    ///
    /// # Panics
    /// As there.
    #[inline]
    pub fn of_mut(&mut self, open: &OpenLink) -> &mut T {
        self.0[open.number].as_mut().expect("an open link has its end")
    }

    /// All links that have ends, with them.
    pub fn iter<'a>(&'a self, links: &'a LinkTable) -> impl Iterator<Item = (&'a OpenLink, &'a T)> {
        links.iter().filter_map(|open| Some((open, self.get(open)?)))
    }

    /// Takes all ends: the links are given up.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.0.drain(..).flatten()
    }
}
