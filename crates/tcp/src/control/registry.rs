//! The list of congestion controls, and everything that follows from a line in it.

/// Makes, from one line per congestion control, the enum that a scenario reads and the type in
/// which a connection keeps its own, so that there is no dynamic dispatch per ACK.
macro_rules! congestion_controls {
    (
        $($(#[$doc:meta])* $kind:ident($module:ident),)+
        --- // Those behind it have no defaults.
        $($(#[$other_doc:meta])* $other:ident($other_module:ident),)*
    ) => {
        aqmlab_declare::registry! {
            /// A congestion control and its parameters, as a scenario states them.
            #[derive(Clone, Copy, Debug, PartialEq)]
            pub enum CongestionControlKind {
                $($(#[$doc])* $kind($module::Params),)+
                $($(#[$other_doc])* $other($other_module::Params),)*
            }
        }

        impl CongestionControlKind {
            /// Each kind that has them with the defaults of its parameters, in the order of the enum.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$kind($module::Params::default()),)+]
            }

            /// What Linux calls it, if its kernels have it.
            pub const fn linux_name(&self) -> Option<&'static str> {
                match self {
                    $(Self::$kind(_) => <$module::Params as ControlParameters>::LINUX,)+
                    $(Self::$other(_) => <$other_module::Params as ControlParameters>::LINUX,)*
                }
            }

            /// The phases that its traces name.
            pub const fn phases(&self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind(_) => {
                        <<$module::Params as ControlParameters>::Control as CongestionControl>::PHASES
                    })+
                    $(Self::$other(_) => {
                        <<$other_module::Params as ControlParameters>::Control as CongestionControl>::PHASES
                    })*
                }
            }

            /// Its parameters that can change during a run.
            pub const fn changeable(&self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind(_) => <$module::Params as aqmlab_declare::Declared>::CHANGEABLE,)+
                    $(Self::$other(_) => <$other_module::Params as aqmlab_declare::Declared>::CHANGEABLE,)*
                }
            }

            /// Whether it sets the window itself, in recovery too.
            #[inline]
            pub(crate) const fn owns_window(&self) -> bool {
                match self {
                    $(Self::$kind(_) => <$module::Params as ControlParameters>::OWNS_WINDOW,)+
                    $(Self::$other(_) => <$other_module::Params as ControlParameters>::OWNS_WINDOW,)*
                }
            }

            /// Whether it answers marks itself.
            #[inline]
            pub(crate) const fn answers_marks(&self) -> bool {
                match self {
                    $(Self::$kind(_) => <$module::Params as ControlParameters>::ANSWERS_MARKS,)+
                    $(Self::$other(_) => <$other_module::Params as ControlParameters>::ANSWERS_MARKS,)*
                }
            }

            /// The echo of marks that it is made for.
            pub const fn echo(&self) -> EcnEcho {
                match self {
                    $(Self::$kind(_) => <$module::Params as ControlParameters>::ECHO,)+
                    $(Self::$other(_) => <$other_module::Params as ControlParameters>::ECHO,)*
                }
            }

            /// The code point of the data that it sends.
            pub(crate) const fn ect(&self) -> Ect {
                match self {
                    $(Self::$kind(_) => <$module::Params as ControlParameters>::ECT,)+
                    $(Self::$other(_) => <$other_module::Params as ControlParameters>::ECT,)*
                }
            }

            /// Whether it needs samples: a log of each segment.
            pub(crate) const fn needs_samples(&self) -> bool {
                let own = match self {
                    $(Self::$kind(_) => <$module::Params as ControlParameters>::NEEDS_SAMPLES,)+
                    $(Self::$other(_) => <$other_module::Params as ControlParameters>::NEEDS_SAMPLES,)*
                };
                own || self.owns_window() || self.answers_marks()
            }

            /// Whether it is nothing without marks: it answers them, and what it does for losses is
            /// Reno's.
            pub const fn goes_by_marks(&self) -> bool {
                self.answers_marks() && !self.owns_window()
            }

            /// Time stamps that the segments of both ends carry for it, if any.
            #[inline]
            pub(crate) const fn stamps(&self) -> Option<Stamps> {
                match self {
                    $(Self::$kind(_) => <$module::Params as ControlParameters>::STAMPS,)+
                    $(Self::$other(_) => <$other_module::Params as ControlParameters>::STAMPS,)*
                }
            }
        }

        /// What a connection's congestion control remembers. Behind a pointer: most remember
        /// nothing, and a connection without losses is small.
        #[derive(Clone, Debug)]
        enum AnyControl {
            $($kind(Box<<$module::Params as ControlParameters>::Control>),)+
            $($other(Box<<$other_module::Params as ControlParameters>::Control>),)*
        }

        /// Hands a call on to the congestion control that is there.
        macro_rules! with_control {
            ($any:expr, $this:ident => $call:expr) => {
                match $any {
                    $(AnyControl::$kind($this) => $call,)+
                    $(AnyControl::$other($this) => $call,)*
                }
            };
            ($any:expr, $stack:expr, $this:ident, $params:ident => $call:expr) => {
                match ($any, &$stack.congestion_control) {
                    $((AnyControl::$kind($this), CongestionControlKind::$kind($params)) => $call,)+
                    $((AnyControl::$other($this), CongestionControlKind::$other($params)) => $call,)*
                    _ => unreachable!("a connection keeps its stack"),
                }
            };
        }

        impl AnyControl {
            #[inline]
            fn new(kind: &CongestionControlKind) -> Self {
                match kind {
                    $(CongestionControlKind::$kind(_) => Self::$kind(Box::default()),)+
                    $(CongestionControlKind::$other(params) => Self::$other(Box::new(params.control())),)*
                }
            }
        }
    };
}

pub(crate) use congestion_controls;
