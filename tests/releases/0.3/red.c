/* RED, as docs/disciplines/red.md has it; packets only, without ECN beyond max_th. */
#include "aqmlab.h"

typedef struct {
  double min_th, max_th, w_q, max_p;
  int64_t mean_packet;
  double avg, p_b, p_a;
  int64_t count, idle_since;
} Red;

static int64_t on_arrival(void *own, AqmlabEvent *event) {
  Red *red = own;
  if (red->idle_since < 0) {
    red->avg = (1.0 - red->w_q) * red->avg + red->w_q * (double)event->packets;
  } else {
    int64_t since = event->now - red->idle_since;
    double idle = (double)(since > 0 ? since : 0) / 1e9;
    double rate = (double)event->rate / (double)(8 * red->mean_packet);
    red->avg *= event->math->pow(1.0 - red->w_q, idle * rate);
    red->idle_since = -1;
  }
  if (red->avg < red->min_th || event->packets < 2) {
    red->count = -1;
    red->p_b = red->p_a = 0.0;
    return AQMLAB_ADMIT;
  }
  if (red->avg >= red->max_th) {
    red->count = 0;
    red->p_b = red->p_a = 1.0;
    return AQMLAB_FORCE;
  }
  red->count += 1;
  red->p_b = red->max_p * (red->avg - red->min_th) / (red->max_th - red->min_th);
  double expected = (double)red->count * red->p_b;
  double p_a = expected >= 1.0 ? 1.0 : red->p_b / (1.0 - expected);
  red->p_a = p_a < 1.0 ? p_a : 1.0;
  if (!aqmlab_chance(event, red->p_a)) return AQMLAB_ADMIT;
  red->count = 0;
  return AQMLAB_SIGNAL;
}

static int64_t on_overflow(void *own, AqmlabEvent *event) {
  (void)event;
  ((Red *)own)->count = 0;
  return 0;
}

static int64_t on_idle(void *own, AqmlabEvent *event) {
  Red *red = own;
  if (red->idle_since < 0) red->idle_since = event->now;
  return 0;
}

static const AqmlabField FIELDS[] = {
    AQMLAB_NEEDED(Red, min_th, AQMLAB_PACKETS, "average below which nothing is signalled"),
    AQMLAB_NEEDED(Red, max_th, AQMLAB_PACKETS, "average from which everything is dropped"),
    AQMLAB_OPTION(Red, w_q, AQMLAB_NUMBER, 0.002, "weight of the newest sample"),
    AQMLAB_OPTION(Red, max_p, AQMLAB_NUMBER, 0.1, "probability as the average reaches max_th"),
    AQMLAB_OPTION(Red, mean_packet, AQMLAB_BYTES, 500, "sets how fast an idle queue ages"),
    AQMLAB_STATE(Red, avg, AQMLAB_NUMBER, 0),
    AQMLAB_STATE(Red, count, AQMLAB_INTEGER, -1),
    AQMLAB_STATE(Red, p_b, AQMLAB_NUMBER, 0),
    AQMLAB_STATE(Red, p_a, AQMLAB_NUMBER, 0),
    /* Quiet since time 0. */
};

const AqmlabDiscipline *aqmlab_discipline(void) {
  static const AqmlabDiscipline RED = {
      .head = {AQMLAB_HEAD(AqmlabDiscipline, AqmlabEvent, Red),
               .name = "c-red",
               .purpose = "Random early detection in C.",
               .fields = FIELDS,
               .field_count = sizeof FIELDS / sizeof *FIELDS},
      .on_arrival = on_arrival,
      .on_overflow = on_overflow,
      .on_idle = on_idle,
  };
  return &RED;
}
