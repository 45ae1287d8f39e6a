//! The list of disciplines, and everything that follows from a line in it.

/// Makes, from one line per discipline, the enum that a scenario reads and the types in which all
/// of a kind are kept, so that there is no dynamic dispatch per packet.
macro_rules! disciplines {
    (
        laws { $($(#[$law_doc:meta])* $law:ident($law_module:ident),)+ }
        queues { $($(#[$queue_doc:meta])* $queue:ident($queue_module:ident),)* }
    ) => {
        aqmlab_net::tagged! {
            /// A discipline and its parameters, as a scenario states them.
            #[derive(Clone, Debug, PartialEq)]
            pub enum Discipline {
                $($(#[$law_doc])* $law($law_module::Params),)+
                $($(#[$queue_doc])* $queue($queue_module::Params),)*
            }
        }

        impl Discipline {
            /// Refuses parameters that contradict each other or mean nothing. The error names the
            /// field and says what was found and what would be right.
            pub fn check(&self) -> Result<(), (String, String)> {
                match self {
                    $(Self::$law(params) => params.check(),)+
                    $(Self::$queue(params) => params.check(),)*
                }
            }

            /// What the discipline says of itself.
            pub const fn about(&self) -> &'static About {
                match self {
                    $(Self::$law(_) => &<$law_module::Params as Parameters>::ABOUT,)+
                    $(Self::$queue(_) => &<$queue_module::Params as Parameters>::ABOUT,)*
                }
            }

            /// What each discipline says of itself, in the order of the enum.
            pub const ABOUT: &'static [&'static About] = &[
                $(&<$law_module::Params as Parameters>::ABOUT,)+
                $(&<$queue_module::Params as Parameters>::ABOUT,)*
            ];

            /// The law, its limit and whether it marks; nothing if the discipline is no law.
            pub(crate) fn law(
                &self,
                link: LinkFacts,
                seed: u64,
            ) -> Option<(AnyLaw, QueueSize, bool)> {
                match self {
                    $(Self::$law(params) => Some((
                        AnyLaw::$law(params.law(link, seed)),
                        params.limit(),
                        params.ecn(),
                    )),)+
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }

            /// The scheduler; nothing if the discipline is a law over a FIFO.
            pub(crate) fn scheduler<T>(
                &self,
                link: LinkFacts,
                seed: u64,
            ) -> Option<AnyScheduler<T>> {
                match self {
                    $(Self::$queue(params) => {
                        Some(AnyScheduler::$queue(params.scheduler(link, seed)))
                    })*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
        }

        /// All laws in one type.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one per port")]
        pub(crate) enum AnyLaw {
            $($law(<$law_module::Params as LawParameters>::Law),)+
        }

        /// Hands a call on to the law that is there.
        macro_rules! with_law {
            ($any:expr, $this:ident => $call:expr) => {
                match $any { $(AnyLaw::$law($this) => $call,)+ }
            };
        }

        impl Law for AnyLaw {
            #[inline]
            fn on_arrival(
                &mut self,
                now: Time,
                packet: &Packet,
                queue: Backlog,
                draw: &mut impl FnMut() -> f64,
            ) -> Verdict {
                with_law!(self, law => law.on_arrival(now, packet, queue, draw))
            }

            #[inline]
            fn on_fate(&mut self, now: Time, packet: &Packet, queue: Backlog, fate: Fate) {
                with_law!(self, law => law.on_fate(now, packet, queue, fate));
            }

            fn watches(&self) -> Watches {
                with_law!(self, law => law.watches())
            }

            #[inline]
            fn on_departure(&mut self, now: Time, packet: &Packet, arrived: Time, queue: Backlog) {
                with_law!(self, law => law.on_departure(now, packet, arrived, queue));
            }

            #[inline]
            fn on_idle(&mut self, since: Time) {
                with_law!(self, law => law.on_idle(since));
            }

            fn next_tick(&self) -> Time {
                with_law!(self, law => law.next_tick())
            }

            fn on_tick(&mut self, now: Time, queue: Backlog) {
                with_law!(self, law => law.on_tick(now, queue));
            }

            fn set_link(&mut self, link: LinkFacts) {
                with_law!(self, law => law.set_link(link));
            }

            fn probe_names(&self) -> &'static [&'static str] {
                with_law!(self, law => law.probe_names())
            }

            fn probe(&self, out: &mut Vec<f64>) {
                with_law!(self, law => law.probe(out));
            }
        }

        /// All schedulers in one type.
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one per port")]
        pub(crate) enum AnyScheduler<T> {
            /// A law over a single FIFO.
            Fifo(Fifo<T>),
            $($queue(<$queue_module::Params as SchedulerParameters>::Scheduler<T>),)*
        }

        /// Hands a call on to the scheduler that is there.
        macro_rules! with_scheduler {
            ($any:expr, $this:ident => $call:expr) => {
                match $any {
                    AnyScheduler::Fifo($this) => $call,
                    $(AnyScheduler::$queue($this) => $call,)*
                }
            };
        }

        impl<T> Scheduler<T> for AnyScheduler<T> {
            #[inline]
            fn enqueue(
                &mut self,
                now: Time,
                packet: Packet,
                item: T,
                ledger: &mut Ledger<T>,
                draw: &mut impl FnMut() -> f64,
            ) {
                with_scheduler!(self, it => it.enqueue(now, packet, item, ledger, draw));
            }

            #[inline]
            fn dequeue(&mut self, now: Time, ledger: &mut Ledger<T>) -> Option<Queued<T>> {
                with_scheduler!(self, it => it.dequeue(now, ledger))
            }

            #[inline]
            fn on_idle(&mut self, since: Time) {
                with_scheduler!(self, it => it.on_idle(since));
            }

            fn next_tick(&self) -> Time {
                with_scheduler!(self, it => it.next_tick())
            }

            fn on_tick(&mut self, now: Time) {
                with_scheduler!(self, it => it.on_tick(now));
            }

            fn set_link(&mut self, link: LinkFacts) {
                with_scheduler!(self, it => it.set_link(link));
            }

            #[inline]
            fn backlog(&self) -> Backlog {
                with_scheduler!(self, it => it.backlog())
            }

            fn probe_names(&self) -> &'static [&'static str] {
                with_scheduler!(self, it => it.probe_names())
            }

            fn probe(&self, out: &mut Vec<f64>) {
                with_scheduler!(self, it => it.probe(out));
            }
        }
    };
}

pub(crate) use disciplines;
