/* CUBIC with HyStart as Linux has it, see docs/congestion-controls/cubic.md. */
#include <math.h>

#include "aqmlab.h"

#define FAR 1e300

typedef struct {
  double w_max, origin, k, w_est;
  int64_t epoch, from_plateau;
} Curve;

typedef struct {
  double c, beta;
  double min_rtt, round_rtt;
  int64_t last_ack, round_end, round_start, train, samples, was_at, was_kept;
  Curve now, was;
} Cubic;

static int64_t start(void *own, AqmlabAck *ack) {
  (void)ack;
  Cubic *cubic = own;
  cubic->min_rtt = cubic->round_rtt = FAR;
  cubic->now.epoch = -1;
  return 0;
}

static double cube(const Cubic *cubic, double t) {
  double x = t - cubic->now.k;
  return cubic->c * x * x * x + cubic->now.origin;
}

static double avoid(Cubic *cubic, double cwnd, double acked, AqmlabAck *ack) {
  Curve *curve = &cubic->now;
  if (curve->epoch < 0) {
    curve->epoch = ack->now;
    curve->w_est = cwnd;
    int flat = curve->from_plateau || cwnd >= curve->w_max;
    curve->origin = flat ? cwnd : curve->w_max;
    curve->k = flat ? 0.0 : ack->math->cbrt((curve->w_max - cwnd) / cubic->c);
    curve->from_plateau = 0;
  }
  double t = (double)(ack->now - curve->epoch) / 1e9;
  double rtt = cubic->min_rtt < FAR ? cubic->min_rtt : 0.0;
  double target = fmin(fmax(cube(cubic, t + rtt), cwnd), 1.5 * cwnd);
  curve->w_est += 3.0 * (1.0 - cubic->beta) / (1.0 + cubic->beta) * acked / cwnd;
  if (cube(cubic, t) < curve->w_est) return fmax(curve->w_est - cwnd, 0.0);
  double step = (target - cwnd) / cwnd * acked;
  return curve->w_max == 0.0 ? fmax(step, 0.05 * acked) : step;
}

static int64_t measure(void *own, AqmlabAck *ack) {
  Cubic *cubic = own;
  if (ack->rtt >= 0) cubic->min_rtt = fmin(cubic->min_rtt, (double)ack->rtt / 1e9);
  cubic->last_ack = ack->now;
  return 0;
}

/* HyStart: whether slow start is to end. */
static int is_full(Cubic *cubic, const AqmlabAck *ack) {
  if (ack->now - cubic->train <= 2000000) {
    cubic->train = ack->now;
    if ((double)(ack->now - cubic->round_start) / 1e9 > cubic->min_rtt / 2.0) return 1;
  }
  if (ack->rtt >= 0 && cubic->samples < 8) {
    cubic->samples += 1;
    cubic->round_rtt = fmin(cubic->round_rtt, (double)ack->rtt / 1e9);
  }
  double growth = fmin(fmax(cubic->min_rtt / 8.0, 0.004), 0.016);
  return cubic->samples >= 8 && cubic->round_rtt > cubic->min_rtt + growth;
}

static int64_t on_ack(void *own, AqmlabAck *ack) {
  Cubic *cubic = own;
  measure(own, ack);
  double mss = (double)ack->mss;
  if (!ack->slow_start) {
    ack->cwnd += avoid(cubic, ack->cwnd / mss, (double)ack->acked / mss, ack) * mss;
    return 0;
  }
  if (ack->una > cubic->round_end) {
    cubic->round_end = ack->max;
    cubic->round_start = cubic->train = ack->now;
    cubic->samples = 0;
    cubic->round_rtt = FAR;
  }
  ack->cwnd = ack->reno;
  if (ack->cwnd / mss >= 16.0 && is_full(cubic, ack)) ack->ssthresh = ack->cwnd;
  return 0;
}

static int64_t on_send(void *own, AqmlabAck *ack) {
  Cubic *cubic = own;
  if (ack->segments == 0 && cubic->now.epoch >= 0 && cubic->last_ack > cubic->now.epoch)
    cubic->now.epoch += ack->now - cubic->last_ack;
  return 0;
}

static int64_t on_loss(void *own, AqmlabAck *ack) {
  Cubic *cubic = own;
  cubic->was = cubic->now;
  cubic->was_at = ack->now;
  cubic->was_kept = 1;
  Curve *curve = &cubic->now;
  double cwnd = ack->cwnd / (double)ack->mss;
  curve->w_max = cwnd < curve->w_max ? cwnd * (1.0 + cubic->beta) / 2.0 : cwnd;
  curve->epoch = -1;
  curve->from_plateau = ack->cause == AQMLAB_TIMEOUT;
  ack->ssthresh = (double)((int64_t)(cubic->beta * ack->base) / ack->mss * ack->mss);
  return 0;
}

static int64_t on_undo(void *own, AqmlabAck *ack) {
  (void)ack;
  Cubic *cubic = own;
  if (!cubic->was_kept) return 0;
  cubic->was_kept = 0;
  cubic->now = cubic->was;
  int64_t passed = cubic->last_ack - cubic->was_at;
  if (cubic->now.epoch >= 0 && passed > 0) cubic->now.epoch += passed;
  return 0;
}

static const AqmlabField FIELDS[] = {
    AQMLAB_OPTION(Cubic, c, AQMLAB_NUMBER, 0.4, "segments per second cubed"),
    AQMLAB_OPTION(Cubic, beta, AQMLAB_NUMBER, 0.7, "share of the window that congestion leaves"),
};

const AqmlabControl *aqmlab_control(void) {
  static const AqmlabControl CUBIC = {
      .head = {AQMLAB_HEAD(AqmlabControl, AqmlabAck, Cubic),
               .name = "c-cubic",
               .purpose = "CUBIC in C.",
               .fields = FIELDS,
               .field_count = sizeof FIELDS / sizeof *FIELDS},
      .start = start,
      .on_ack = on_ack,
      .on_recovery_ack = measure,
      .on_send = on_send,
      .on_loss = on_loss,
      .on_undo = on_undo,
  };
  return &CUBIC;
}
