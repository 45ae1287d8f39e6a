//! The list of disciplines, and everything that follows from a line in it.

/// Makes, from one line per discipline, the enum that a scenario reads and the types in which all
/// of a kind are kept, so that there is no dynamic dispatch per packet.
macro_rules! disciplines {
    (
        aqms { $($(#[$aqm_doc:meta])* $aqm:ident($aqm_module:ident),)+ }
        schedulers { $($(#[$queue_doc:meta])* $queue:ident($queue_module:ident),)* }
        either { $($(#[$both_doc:meta])* $both:ident($both_module:ident),)* }
    ) => {
        aqmlab_declare::registry! {
            /// A discipline and its parameters, as a scenario states them.
            #[derive(Clone, Debug, PartialEq)]
            pub enum Discipline {
                $($(#[$aqm_doc])* $aqm($aqm_module::Params),)+
                $($(#[$queue_doc])* $queue($queue_module::Params),)*
                $($(#[$both_doc])* $both($both_module::Params),)*
            }
        }

        #[allow(unused_doc_comments, reason = "attributes may leave a kind out")]
        impl Discipline {
            /// Why it can drop or mark a packet.
            pub fn reasons(&self) -> &'static [Reason] {
                match self {
                    $($(#[$aqm_doc])* Self::$aqm(_) => <$aqm_module::Params as AqmParameters>::REASONS,)+
                    $($(#[$queue_doc])* Self::$queue(params) => params.reasons(),)*
                    $(Self::$both(_) => $both_module::Params::REASONS,)*
                }
            }

            /// Whether it is an AQM over a single FIFO.
            pub fn is_aqm(&self) -> bool {
                match self {
                    $($(#[$aqm_doc])* Self::$aqm(_) => true,)+
                    $($(#[$queue_doc])* Self::$queue(_) => false,)*
                    $(Self::$both(params) => params.is_aqm(),)*
                }
            }

            /// Its parameters that can change during a run.
            pub fn changeable(&self) -> Vec<&'static str> {
                match self {
                    $($(#[$aqm_doc])* Self::$aqm(_) => <$aqm_module::Params as aqmlab_declare::Declared>::CHANGEABLE.to_vec(),)+
                    $($(#[$queue_doc])* Self::$queue(params) => params.changeable(),)*
                    $(Self::$both(params) => params.changeable().collect(),)*
                }
            }

            /// The AQM, its limit and whether it marks; nothing if the discipline is no aqm.
            pub(crate) fn aqm(
                &self,
                link: LinkFacts,
                seed: u64,
            ) -> Option<(AnyAqm, QueueSize, bool)> {
                match self {
                    $($(#[$aqm_doc])* Self::$aqm(params) => Some((
                        AnyAqm::$aqm(params.aqm(link, seed)),
                        params.limit,
                        params.ecn || params.marks(),
                    )),)+
                    $(Self::$both(params) if params.is_aqm() => Some((
                        AnyAqm::$both(params.aqm(link, seed)),
                        params.limit,
                        params.ecn,
                    )),)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }

            /// The scheduler; nothing if the discipline is an AQM over a FIFO.
            pub(crate) fn scheduler<T>(
                &self,
                link: LinkFacts,
                seed: u64,
            ) -> Option<AnyScheduler<T>> {
                match self {
                    $($(#[$queue_doc])* Self::$queue(params) => {
                        Some(AnyScheduler::$queue(params.scheduler(link, seed)))
                    })*
                    $(Self::$both(params) if !params.is_aqm() => {
                        Some(AnyScheduler::$both(params.scheduler(link, seed)))
                    })*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
        }

        /// All AQMs in one type.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one per port")]
        pub(crate) enum AnyAqm {
            $($(#[$aqm_doc])* $aqm(<$aqm_module::Params as AqmParameters>::Aqm),)+
            $($both($both_module::PluginAqm),)*
        }

        /// Hands a call on to the AQM that is there.
        macro_rules! with_aqm {
            ($any:expr, $this:ident => $call:expr) => {
                match $any {
                    $($(#[$aqm_doc])* AnyAqm::$aqm($this) => $call,)+
                    $(AnyAqm::$both($this) => $call,)*
                }
            };
        }

        #[allow(unused_doc_comments, reason = "attributes may leave a kind out")]
        impl Aqm for AnyAqm {
            #[inline]
            fn on_arrival(
                &mut self,
                now: Time,
                packet: &Packet,
                queue: Backlog,
                draw: &mut impl FnMut() -> f64,
            ) -> Decision {
                with_aqm!(self, aqm => aqm.on_arrival(now, packet, queue, draw))
            }

            #[inline]
            fn on_outcome(&mut self, now: Time, packet: &Packet, queue: Backlog, outcome: Outcome) {
                with_aqm!(self, aqm => aqm.on_outcome(now, packet, queue, outcome));
            }

            fn hooks(&self) -> Hooks {
                with_aqm!(self, aqm => aqm.hooks())
            }

            #[inline]
            fn on_departure(&mut self, now: Time, packet: &Packet, arrived: Time, queue: Backlog) {
                with_aqm!(self, aqm => aqm.on_departure(now, packet, arrived, queue));
            }

            #[inline]
            fn on_idle(&mut self, since: Time) {
                with_aqm!(self, aqm => aqm.on_idle(since));
            }

            fn next_tick(&self) -> Time {
                with_aqm!(self, aqm => aqm.next_tick())
            }

            fn on_tick(&mut self, now: Time, queue: Backlog) {
                with_aqm!(self, aqm => aqm.on_tick(now, queue));
            }

            fn set_link(&mut self, link: LinkFacts) {
                with_aqm!(self, aqm => aqm.set_link(link));
            }

            fn adopt(&mut self, fresh: Self) {
                match (self, fresh) {
                    $($(#[$aqm_doc])* (Self::$aqm(aqm), Self::$aqm(fresh)) => aqm.adopt(fresh),)+
                    $((Self::$both(aqm), Self::$both(fresh)) => aqm.adopt(fresh),)*
                    _ => unreachable!("parameters change, not the kind"),
                }
            }

            fn probe_names(&self) -> &'static [&'static str] {
                with_aqm!(self, aqm => aqm.probe_names())
            }

            fn probe(&self, out: &mut Vec<f64>) {
                with_aqm!(self, aqm => aqm.probe(out));
            }
        }

        /// All schedulers in one type.
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one per port")]
        pub(crate) enum AnyScheduler<T> {
            /// An AQM over a single FIFO.
            StoredFifo(StoredFifo<T>),
            $($(#[$queue_doc])* $queue(<$queue_module::Params as SchedulerParameters>::Scheduler<T>),)*
            $($both($both_module::PluginScheduler<T>),)*
        }

        /// Hands a call on to the scheduler that is there.
        macro_rules! with_scheduler {
            ($any:expr, $this:ident => $call:expr) => {
                match $any {
                    AnyScheduler::StoredFifo($this) => $call,
                    $($(#[$queue_doc])* AnyScheduler::$queue($this) => $call,)*
                    $(AnyScheduler::$both($this) => $call,)*
                }
            };
        }

        #[allow(unused_doc_comments, reason = "attributes may leave a kind out")]
        impl<T> Scheduler<T> for AnyScheduler<T> {
            #[inline(always)]
            fn enqueue(
                &mut self,
                now: Time,
                packet: Packet,
                item: T,
                stats: &mut Stats<T>,
                context: &mut impl Context,
            ) {
                with_scheduler!(self, it => it.enqueue(now, packet, item, stats, context));
            }

            #[inline(always)]
            fn dequeue(
                &mut self,
                now: Time,
                stats: &mut Stats<T>,
                draw: &mut impl FnMut() -> f64,
            ) -> Option<Queued<T>> {
                with_scheduler!(self, it => it.dequeue(now, stats, draw))
            }

            fn next_release(&self) -> Time {
                with_scheduler!(self, it => it.next_release())
            }

            fn arrivals_release(&self) -> bool {
                with_scheduler!(self, it => it.arrivals_release())
            }

            fn head_size(&self) -> Option<u32> {
                with_scheduler!(self, it => it.head_size())
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

            fn adopt(&mut self, fresh: Self) {
                match (self, fresh) {
                    (Self::StoredFifo(it), Self::StoredFifo(fresh)) => it.adopt(fresh),
                    $($(#[$queue_doc])* (Self::$queue(it), Self::$queue(fresh)) => it.adopt(fresh),)*
                    $((Self::$both(it), Self::$both(fresh)) => it.adopt(fresh),)*
                    _ => unreachable!("parameters change, not the kind"),
                }
            }

            #[inline(always)]
            fn backlog(&self) -> Backlog {
                with_scheduler!(self, it => it.backlog())
            }

            fn begin_parts(&mut self, now: Time) {
                with_scheduler!(self, it => it.begin_parts(now));
            }

            fn parts(&mut self, now: Time) -> Option<Parts> {
                with_scheduler!(self, it => it.parts(now))
            }

            #[inline(always)]
            fn last_cell(&self) -> Option<u16> {
                with_scheduler!(self, it => it.last_cell())
            }

            fn last_holder(&self) -> Option<Holder> {
                with_scheduler!(self, it => it.last_holder())
            }

            fn watch_holders(&mut self) -> Vec<String> {
                with_scheduler!(self, it => it.watch_holders())
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
