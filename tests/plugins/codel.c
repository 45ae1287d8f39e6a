/* CoDel (RFC 8289), as docs/disciplines/codel.md has it. */
#include <math.h>

#include "aqmlab.h"

typedef struct {
  int64_t target, interval, mtu;
  int64_t least, dropping, count, last_count, first_above, drop_next;
  /* What a packet that was dropped just before has left to do. */
  enum { NOTHING, BEGIN, SPACE } phase;
} Codel;

static int64_t spacing(const Codel *codel) {
  return (int64_t)((double)codel->interval / sqrt((double)codel->count));
}

static int64_t start(void *own, AqmlabEvent *event) {
  Codel *codel = own;
  int64_t three = 24000000000 * (codel->mtu + event->framing) / event->rate;
  codel->least = codel->target > three / 2 ? codel->target : three / 2;
  codel->first_above = -1;
  return 0;
}

static void begin(Codel *codel, int64_t now) {
  int64_t delta = codel->count - codel->last_count;
  int recent = now - codel->drop_next < 16 * codel->interval;
  codel->dropping = 1;
  codel->count = delta > 1 && recent ? delta : 1;
  codel->drop_next = now + spacing(codel);
  codel->last_count = codel->count;
}

static int64_t on_head(void *own, AqmlabEvent *event) {
  Codel *codel = own;
  int ok = 0;
  if (event->now - event->arrived < codel->least || event->queue_bytes <= codel->mtu)
    codel->first_above = -1;
  else if (codel->first_above < 0)
    codel->first_above = event->now + codel->interval;
  else
    ok = event->now >= codel->first_above;
  if (codel->phase == BEGIN) {
    codel->phase = NOTHING;
    begin(codel, event->now);
    return AQMLAB_ADMIT;
  }
  if (codel->phase == SPACE) {
    codel->phase = NOTHING;
    if (ok)
      codel->drop_next += spacing(codel);
    else
      codel->dropping = 0;
  } else if (codel->dropping) {
    codel->dropping = ok;
  } else if (ok) {
    if (event->marks)
      begin(codel, event->now);
    else
      codel->phase = BEGIN;
    return AQMLAB_SIGNAL;
  }
  if (codel->dropping && event->now >= codel->drop_next) {
    codel->count += 1;
    if (event->marks)
      codel->drop_next += spacing(codel);
    else
      codel->phase = SPACE;
    return AQMLAB_SIGNAL;
  }
  return AQMLAB_ADMIT;
}

static int64_t on_idle(void *own, AqmlabEvent *event) {
  Codel *codel = own;
  codel->first_above = -1;
  if (codel->phase == BEGIN)
    begin(codel, event->now);
  else
    codel->dropping = 0;
  codel->phase = NOTHING;
  return 0;
}

static const AqmlabField FIELDS[] = {
    AQMLAB_OPTION(Codel, target, AQMLAB_TIME, 5e6, "acceptable standing delay"),
    AQMLAB_OPTION(Codel, interval, AQMLAB_TIME, 1e8, "how long it must be exceeded"),
    AQMLAB_OPTION(Codel, mtu, AQMLAB_BYTES, 1500, "a queue of so much is left alone"),
    AQMLAB_STATE(Codel, dropping, AQMLAB_BOOLEAN, 0),
    AQMLAB_STATE(Codel, count, AQMLAB_INTEGER, 0),
};

const AqmlabDiscipline *aqmlab_discipline(void) {
  static const AqmlabDiscipline CODEL = {
      .head = {AQMLAB_HEAD(AqmlabDiscipline, AqmlabEvent, Codel),
               .name = "c-codel",
               .purpose = "Controlled delay in C.",
               .fields = FIELDS,
               .field_count = sizeof FIELDS / sizeof *FIELDS},
      .start = start,
      .on_head = on_head,
      .on_idle = on_idle,
  };
  return &CODEL;
}
