//! The algorithms by name.

use std::fmt;

macro_rules! ways {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $way:ident = $text:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $way,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$way),*];

            /// Its name in commands.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$way => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}

ways! {
    /// Algorithms that broadcast n bytes to p members.
    Broadcast {
        /// The root sends all bytes to each other member: one superstep, h = (p-1) n.
        Direct = "direct",
        /// Each member that has the bytes sends them on: ⌈log2 p⌉ supersteps, h = n each.
        Binomial = "binomial",
        /// To the first of each of √p groups, then to the rest: two supersteps, h = (√p - 1) n each.
        Square = "square",
        /// Scatter and allgather: two supersteps, h = n (p-1)/p each.
        TwoPhase = "two-phase",
    }

    /// Algorithms that reduce vectors of n bytes to a root.
    Reduce {
        /// All vectors to the root: one superstep, h = (p-1) n.
        Direct = "direct",
        /// Reduce-scatter and gather: two supersteps, h = n (p-1)/p each.
        Transpose = "transpose",
        /// √p groups: two supersteps, h = (√p - 1) n each.
        Square = "square",
        /// The members combine in pairs, then the pairs in pairs: ⌈log2 p⌉ supersteps, h = n each.
        Binomial = "binomial",
        /// Reduce-scatter by halving, then a gather by a tree: 2 ⌊log2 p⌋ supersteps, h = 2 n (p-1)/p in all.
        Rabenseifner = "rabenseifner",
        /// Reduce-scatter by exchanges in groups of up to 4, then a gather by the same groups.
        Radix = "radix-k",
        /// Blocks go around, then the root gathers: p supersteps, h = 2 n (p-1)/p in all. For commutative
        /// operators.
        Ring = "ring",
    }

    /// Algorithms that reduce vectors of n bytes to all members.
    Allreduce {
        /// Exchanges of whole vectors: ⌊log2 p⌋ supersteps, h = n each.
        Doubling = "doubling",
        /// Blocks go around twice: 2 (p-1) supersteps, h = n/p each. For commutative operators.
        Ring = "ring",
        /// Halving and doubling: 2 ⌊log2 p⌋ supersteps, h = 2 n (p-1)/p in all.
        Rabenseifner = "rabenseifner",
        /// Reduce-scatter and allgather: two supersteps, h = n (p-1)/p each.
        Transpose = "transpose",
    }

    /// Algorithms that reduce vectors of n bytes to a root if the members arrive at different times.
    ReduceByArrival {
        /// Segments travel between members that have arrived; a late member sends its own only. For commutative operators.
        Clairvoyant = "clairvoyant",
        /// A binomial tree that ignores the estimates: each member receives from its children in a fixed order.
        Binomial = "binomial-stat",
        /// A Fibonacci tree that ignores the estimates.
        Fibonacci = "fibonacci-stat",
        /// The predicted dynamic tree: pairs are formed in the predicted order of arrival.
        PredictedTree = "tree-predicted",
    }

    /// Algorithms that reduce vectors of n bytes to all members if these arrive at different times. Only the linear
    /// one is for operators that do not commute.
    AllreduceByArrival {
        /// A chain in rank order: the sums go to the last member, and the result goes on from there, member by member.
        Linear = "linear",
        /// Segments go around twice.
        Ring = "ring",
        /// A chain in the order of arrival.
        SortedLinearTree = "slt",
        /// A ring in the order of arrival, in which early members combine segments in advance.
        PreReducedRing = "prr",
        /// Segments travel to members that have arrived, and from there to members that lack them.
        Clairvoyant = "clairvoyant",
    }

    /// Algorithms that gather n bytes in all at all members.
    Allgather {
        /// Each member sends to each other member: one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// Twice as much in every superstep: ⌈log2 p⌉ of them, h = n (p-1)/p in all.
        Bruck = "bruck",
        /// Blocks go around: p-1 supersteps, h = n/p each.
        Ring = "ring",
    }

    /// Algorithms that exchange n bytes of each member, in parts for all members.
    Alltoall {
        /// Each member sends to each other member: one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// By powers of two of the distance: ⌈log2 p⌉ supersteps, h = n/2 each. For blocks of one length.
        Bruck = "bruck",
    }

    /// Algorithms that combine the vectors of all earlier members.
    Scan {
        /// Each member sends to all later ones: one superstep, h = (p-1) n.
        Direct = "direct",
        /// Twice as far in every superstep: ⌈log2 p⌉ of them, h = n each; one more for an exscan.
        Tree = "tree",
    }

    /// Algorithms that gather n bytes in all at a root, or scatter them from it.
    Gather {
        /// In one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// By a tree: ⌈log2 p⌉ supersteps, h = n (p-1)/p in all.
        Binomial = "binomial",
    }

    /// Algorithms that combine vectors of n bytes and leave each member its block.
    ReduceScatter {
        /// Each member sends to each other member: one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// Blocks go around: p-1 supersteps, h = n/p each. For commutative operators.
        Ring = "ring",
    }
}
