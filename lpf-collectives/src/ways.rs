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
    /// Ways to broadcast n bytes to p members.
    Broadcast {
        /// The root sends everything to everybody: one superstep, h = (p-1) n.
        Direct = "direct",
        /// Whoever has it sends it on: ⌈log2 p⌉ supersteps, h = n each.
        Binomial = "binomial",
        /// To the first of each of √p groups, then to the rest: two supersteps, h = (√p - 1) n each.
        Square = "square",
        /// Blocks to everybody, which all gather: two supersteps, h = n (p-1)/p each.
        TwoPhase = "two-phase",
    }

    /// Ways to reduce vectors of n bytes to a root.
    Reduce {
        /// All vectors to the root: one superstep, h = (p-1) n.
        Direct = "direct",
        /// Reduce-scatter and gather: two supersteps, h = n (p-1)/p each.
        Transpose = "transpose",
        /// √p groups: two supersteps, h = (√p - 1) n each.
        Square = "square",
        /// Pairs, pairs of pairs: ⌈log2 p⌉ supersteps, h = n each.
        Binomial = "binomial",
        /// Halving, then the shares go up: 2 ⌊log2 p⌋ supersteps, h = 2 n (p-1)/p in all.
        Rabenseifner = "rabenseifner",
        /// Exchanges in groups of up to 4, then the shares go up.
        Radix = "radix-k",
        /// Blocks go around, then the root gathers: p supersteps, h = 2 n (p-1)/p in all. For commutative
        /// operators.
        Ring = "ring",
    }

    /// Ways to reduce vectors of n bytes to everybody.
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

    /// Ways to reduce vectors of n bytes to a root by members that arrive at different times.
    ReduceByArrival {
        /// Segments, each to who is there; who is late sends his own and nothing else. For commutative operators.
        Clairvoyant = "clairvoyant",
        /// A binomial tree whose members take what their children have in one order, whoever is late.
        Binomial = "binomial-stat",
        /// A Fibonacci tree of that kind.
        Fibonacci = "fibonacci-stat",
        /// The predicted dynamic tree: pairs are formed in the predicted order of arrival.
        PredictedTree = "tree-predicted",
    }

    /// Ways to reduce vectors of n bytes to everybody by members that arrive at different times. For commutative
    /// operators, but the linear one.
    AllreduceByArrival {
        /// From member to member: to the last one, and from there on.
        Linear = "linear",
        /// Segments go around twice.
        Ring = "ring",
        /// From member to member in the order of arrival.
        SortedLinearTree = "slt",
        /// Around in the order of arrival; who is early reduces ahead.
        PreReducedRing = "prr",
        /// Segments, each to who is there, and on to who lacks it.
        Clairvoyant = "clairvoyant",
    }

    /// Ways to gather n bytes in all at everybody.
    Allgather {
        /// Everybody to everybody: one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// Twice as much in every superstep: ⌈log2 p⌉ of them, h = n (p-1)/p in all.
        Bruck = "bruck",
        /// Blocks go around: p-1 supersteps, h = n/p each.
        Ring = "ring",
    }

    /// Ways to exchange n bytes in all of every member with all others.
    Alltoall {
        /// Everybody to everybody: one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// By powers of two of the distance: ⌈log2 p⌉ supersteps, h = n/2 each. For blocks of one length.
        Bruck = "bruck",
    }

    /// Ways to reduce the vectors of all members before.
    Scan {
        /// Everybody to all behind it: one superstep, h = (p-1) n.
        Direct = "direct",
        /// Twice as far in every superstep: ⌈log2 p⌉ of them, h = n each; one more for an exscan.
        Tree = "tree",
    }

    /// Ways to gather n bytes in all at a root, or to scatter them from it.
    Gather {
        /// In one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// By a tree: ⌈log2 p⌉ supersteps, h = n (p-1)/p in all.
        Binomial = "binomial",
    }

    /// Ways to combine vectors of n bytes and leave everybody its block.
    ReduceScatter {
        /// Everybody to everybody: one superstep, h = n (p-1)/p.
        Direct = "direct",
        /// Blocks go around: p-1 supersteps, h = n/p each. For commutative operators.
        Ring = "ring",
    }
}
