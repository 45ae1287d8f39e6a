//! Header prediction (Van Jacobson, 1990): two kinds of segments are nearly all that an end point
//! sees, the next data and the acknowledgement of new data. They take a short way here; it leaves
//! out what cannot matter for them and calls the same code for the rest.

use aqmlab_net::Ecn;

use crate::endpoint::{Context, Endpoint, Events, Repair};
use crate::segment::{Flags, Outbox, Segment};

impl Endpoint {
    /// Takes a segment of an established connection if it is one of the two kinds and nothing
    /// unusual is going on; else it is left to the general code, and nothing has changed.
    #[inline]
    pub(crate) fn on_predicted(
        &mut self,
        segment: &Segment,
        cx: Context<'_>,
        out: &mut impl Outbox,
    ) -> Option<Events> {
        if segment.flags != Flags::ACK
            || !self.is_established()
            || self.stamping
            || self.ecn.hold
            || !segment.options.is_empty()
        {
            return None;
        }
        let mut received = 0;
        if segment.len == 0 {
            // An ACK of new data, while none is lost.
            let acknowledges = self.una < segment.ack && segment.ack <= self.max;
            if !acknowledges || self.repair != Repair::Open {
                return None;
            }
            self.last_received = cx.now;
            self.on_new_ack(segment, false, cx, out);
        } else {
            // The next data, which acknowledges nothing.
            received = u64::from(segment.len);
            let is_next = self.receiver.is_next(segment.seq, received, cx.profile);
            if !is_next || segment.ack > self.una || segment.ecn == Ecn::Ce {
                return None;
            }
            self.last_received = cx.now;
            self.dup_acks = 0;
            self.receiver.on_next(received, cx.now, cx.profile, cx.host);
        }
        self.output(cx, out);
        Some(Events {
            received,
            ..Events::default()
        })
    }
}
