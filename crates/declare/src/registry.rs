//! From one line per kind, the enum that a scenario reads.

/// Defines an enum of kinds, each with its [`Parameters`](crate::Parameters): a
/// [`tagged!`](crate::tagged!) enum with `check`, `about` and `ABOUT`.
///
/// A line is a variant and the type of its parameters; its comment is the kind's summary in lists
/// and in the schema. The crate that uses it needs `serde` and `schemars`.
#[macro_export]
macro_rules! registry {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $kind:ident($params:ty),)+
        }
    ) => {
        $crate::tagged! {
            $(#[$meta])*
            $vis enum $name {
                $($(#[$doc])* $kind($params),)+
            }
        }

        impl $name {
            /// What each kind says of itself, in the order of the enum.
            #[allow(unused_doc_comments, reason = "attributes may leave a kind out")]
            pub const ABOUT: &'static [&'static $crate::About] = &[
                $($(#[$doc])* &<$params as $crate::Parameters>::ABOUT,)+
            ];

            /// What the kind says of itself.
            #[allow(unused_doc_comments, reason = "attributes may leave a kind out")]
            pub const fn about(&self) -> &'static $crate::About {
                match self {
                    $($(#[$doc])* Self::$kind(_) => &<$params as $crate::Parameters>::ABOUT,)+
                }
            }

            /// Refuses parameters that contradict each other or mean nothing. The error names the
            /// field and says what was found and what would be right.
            #[allow(unused_doc_comments, reason = "attributes may leave a kind out")]
            pub fn check(&self) -> ::core::result::Result<(), $crate::Problem> {
                match self {
                    $($(#[$doc])* Self::$kind(params) => $crate::Parameters::check(params),)+
                }
            }

            /// For tests: values on both sides of each bound of the kind's parameters.
            #[allow(unused_doc_comments, reason = "attributes may leave a kind out")]
            pub fn refused(&self) -> Vec<$crate::Refused> {
                match self {
                    $($(#[$doc])* Self::$kind(_) => <$params as $crate::Declared>::refused(),)+
                }
            }
        }
    };
}
