//! `LPF_EXCHANGE`.

/// The algorithm by which processes that exchange messages announce their requests to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// Every process sends to every other.
    Direct,
    /// Randomised Bruck.
    Bruck,
}
