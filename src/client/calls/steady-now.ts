/**
 * The clock from which a producer counts the delays of its calls: that of Redis, which for a later call is never behind
 * that of an earlier one. A measurement that narrows the range of the clock would take it back by a part of a
 * millisecond, and a step of the clock of Redis by more: jobs of the same delay would change places. So the clock stands
 * until Redis has come after it, as it would for anybody who slews a clock. Where it would have to stand for longer than
 * a minute, the clock of Redis was wrong before, and jobs must not wait until it is as late again: then it is followed.
 */

const STANDS_MAX_MS = 60_000;

/** @param latestMs the clock of Redis at a monotonic moment, never behind it */
export function createSteadyNow(latestMs: (calledMs: number) => number): (calledMs: number) => number {
  let last = { calledMs: Number.NEGATIVE_INFINITY, nowMs: Number.NEGATIVE_INFINITY };
  return (calledMs) => {
    const nowMs = latestMs(calledMs);
    // Its data took longer to check than those of a call that was made after it.
    const isOvertaken = calledMs < last.calledMs;
    const backMs = isOvertaken ? nowMs - last.nowMs : last.nowMs - nowMs;
    const steadyMs = backMs > 0 && backMs <= STANDS_MAX_MS ? last.nowMs : nowMs;
    if (!isOvertaken) last = { calledMs, nowMs: steadyMs };
    return steadyMs;
  };
}
