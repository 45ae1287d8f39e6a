//! How results are declared: what each number means, its unit, and how it is shown.

use serde::Serialize;

/// How a metric is shown beside its label and unit, and what it is called for short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Look {
    /// Digits after the decimal point; nothing: no table shows it.
    digits: Option<u8>,
    /// Head of its column on a terminal; empty: it has none there.
    head: &'static str,
    /// What options call it; empty: its key alone.
    name: &'static str,
    /// The key behind which it is shown; empty: where it is declared.
    after: &'static str,
    /// Its least and its largest value, where the unit does not imply them.
    within: Option<(f64, f64)>,
    /// What users like of it: `more` or `less`.
    better: &'static str,
}

impl Look {
    pub(crate) const NONE: Self = Self {
        digits: None,
        head: "",
        name: "",
        after: "",
        within: None,
        better: "less",
    };

    pub(crate) const fn digits(mut self, digits: u8) -> Self {
        self.digits = Some(digits);
        self
    }

    pub(crate) const fn head(mut self, head: &'static str) -> Self {
        self.head = head;
        self
    }

    pub(crate) const fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    pub(crate) const fn after(mut self, key: &'static str) -> Self {
        self.after = key;
        self
    }

    pub(crate) const fn within(mut self, ends: (f64, f64)) -> Self {
        self.within = Some(ends);
        self
    }

    pub(crate) const fn better(mut self, when: &'static str) -> Self {
        self.better = when;
        self
    }
}

/// The share up to which a percentile reaches: 0.5 of 50, 0.999 of 999.
pub(crate) const fn share(rank: u32) -> f64 {
    rank as f64 / if rank < 100 { 100.0 } else { 1000.0 }
}

/// Declares a part of the summary: its fields with their meanings, labels, units and looks, from
/// which its JSON Schema and all that is said of its metrics follow.
///
/// `KEY: TYPE = LABEL, UNIT, LOOK VALUE, ...;` is a field; the looks are the methods of [`Look`].
/// `percentiles sojourn_p(50, 99)_s = (N " sojourn"), UNIT, ...;` is a field for each rank,
/// `sojourn_p50_s` and `sojourn_p99_s`. `N` stands for the rank in words, `of` for what follows
/// "99th percentile" in the meaning; a rank may have a meaning of its own, and in brackets looks of
/// its own. `names` begins their short names, `each` has looks of all.
///
/// A part `PART` is made from its `PARTValues`, in which `sojourn_p` is the array of these
/// percentiles; `PART::SOJOURN_P` are their shares.
macro_rules! results {
    (null fields left out; $($parts:tt)+) => {
        $crate::declaration::results!(
            @[serde(skip_serializing_if = "Option::is_none")] $($parts)+
        );
    };
    (@$every:tt $(
        $(#[doc = $about:literal])+
        pub struct $part:ident {
            $(
                $(#[doc = $meaning:literal])+
                $(#[cfg($($present:tt)+)])?
                $(#[serde($($how:tt)+)])?
                $field:ident: $type:ty = $label:literal, $unit:ident $(, $look:ident $value:tt)*;
                $(percentiles $stem:ident(
                    $($rank:tt $($own:literal)? $([$($own_look:ident $own_value:tt),+])?),+
                )$end:ident = $words:tt, $measure:ident, of $of:literal, names $names:tt,
                each $each:tt;)*
            )+
        }
    )+) => { pastey::paste! {$(
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, aqmlab_declare::JsonSchema)]
        pub struct $part {
            $(
                $(#[doc = $meaning])+
                $(#[cfg($($present)+)])?
                #$every
                $(#[serde($($how)+)])?
                #[schemars(extend(
                    "x-label" = $label,
                    "x-unit" = $crate::unit::Unit::$unit.stored,
                    "x-shown-unit" = $crate::unit::Unit::$unit.shown,
                    "x-scale" = $crate::unit::Unit::$unit.scale,
                    "x-look" = $crate::declaration::look!(($($look $value),*))
                ))]
                pub $field: $type,
                $($(
                    #[doc = $crate::declaration::rank!(meaning [$($own)?] $rank $of)]
                    #$every
                    #[schemars(extend(
                        "x-label" = $crate::declaration::rank!(label $words $rank),
                        "x-unit" = $crate::unit::Unit::$measure.stored,
                        "x-shown-unit" = $crate::unit::Unit::$measure.shown,
                        "x-scale" = $crate::unit::Unit::$measure.scale,
                        "x-look" = $crate::declaration::look!($each ($($($own_look $own_value),+)?))
                            .name($crate::declaration::rank!(name $names $rank))
                    ))]
                    pub [<$stem $rank $end>]: Option<f64>,
                )+)*
            )+
        }

        #[doc = "What [`" $part "`] is made of."]
        pub(crate) struct [<$part Values>] {
            $(
                $(#[cfg($($present)+)])?
                pub(crate) $field: $type,
                $(pub(crate) $stem: [Option<f64>; [$($rank),+].len()],)*
            )+
        }

        impl $part {
            $($(
                pub(crate) const [<$stem:upper>]: [f64; [$($rank),+].len()] =
                    [$($crate::declaration::share($rank)),+];
            )*)+
        }

        impl From<[<$part Values>]> for $part {
            fn from(values: [<$part Values>]) -> Self {
                $($(let [$([<$stem $rank $end>]),+] = values.$stem;)*)+
                Self {
                    $(
                        $(#[cfg($($present)+)])?
                        $field: values.$field,
                        $($([<$stem $rank $end>],)+)*
                    )+
                }
            }
        }
    )+}};
    ($($parts:tt)+) => {
        $crate::declaration::results!(@[allow(missing_docs)] $($parts)+);
    };
}

/// The looks of some lists together.
macro_rules! look {
    ($(($($look:ident $value:tt),*))+) => {
        $crate::declaration::Look::NONE$($(.$look($value))*)+
    };
}

/// What is said of a percentile by its rank, where 999 stands for 99.9.
macro_rules! rank {
    (meaning [$own:literal] $rank:tt $of:literal) => {
        $own
    };
    (meaning [] 50 $of:literal) => {
        concat!("Median", $of, ".")
    };
    (meaning [] 999 $of:literal) => {
        concat!("99.9th percentile", $of, ".")
    };
    (meaning [] $rank:tt $of:literal) => {
        concat!($rank, "th percentile", $of, ".")
    };
    (label (N $what:literal) 50) => {
        concat!("median", $what)
    };
    (label (N $what:literal) 999) => {
        concat!("99.9 %", $what)
    };
    (label (N $what:literal) $rank:tt) => {
        concat!($rank, " %", $what)
    };
    (label ($what:literal N) $rank:tt) => {
        concat!($what, $rank)
    };
    (name "" $rank:tt) => {
        ""
    };
    (name $names:tt $rank:tt) => {
        concat!($names, $rank)
    };
}

pub(crate) use {look, rank, results};
