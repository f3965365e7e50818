/**
 * What becomes of simulated jobs over time: the time from now until the last job is due, in steps of one length, so that a page can
 * draw it. A job belongs to the step in which it is due, however late it starts; what is due already belongs to the first.
 */

/** The jobs that were played, by when they are due. */
export interface SimulatedSteps {
  /** When the first step begins, epoch ms. */
  readonly fromMs: number;
  readonly stepMs: number;
  /** How many jobs are due in each. */
  readonly due: readonly number[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** As people divide a day. */
const LENGTHS_MS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * MINUTE_MS);
const STEPS_MAX = 72;

export class TimeSteps {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly count: number;

  constructor(nowMs: number, untilMs: number) {
    const lengthMs = LENGTHS_MS.find((ms) => (untilMs - nowMs) / ms <= STEPS_MAX) ?? 24 * HOUR_MS;
    this.stepMs = lengthMs;
    this.fromMs = Math.floor(nowMs / lengthMs) * lengthMs;
    this.count = Math.max(1, Math.ceil((untilMs - this.fromMs) / lengthMs));
  }

  of(dueMs: number): number {
    return Math.min(this.count - 1, Math.max(0, Math.floor((dueMs - this.fromMs) / this.stepMs)));
  }

  dueOf(dueMs: Float64Array, count: number): SimulatedSteps {
    const due = new Array<number>(this.count).fill(0);
    for (let job = 0; job < count; job += 1) {
      const at = this.of(dueMs[job] ?? 0);
      due[at] = (due[at] ?? 0) + 1;
    }
    return { fromMs: this.fromMs, stepMs: this.stepMs, due };
  }
}

/** By how much the latest job of each step starts late. */
export class LatestByStep {
  readonly #steps: TimeSteps;
  readonly #latest: (number | null)[];
  readonly #left: boolean[];

  constructor(steps: TimeSteps) {
    this.#steps = steps;
    this.#latest = new Array<number | null>(steps.count).fill(null);
    this.#left = new Array<boolean>(steps.count).fill(false);
  }

  /** @param startedMs 0: it never starts */
  add(dueMs: number, startedMs: number): void {
    const at = this.#steps.of(dueMs);
    if (startedMs === 0) this.#left[at] = true;
    else this.#latest[at] = Math.max(this.#latest[at] ?? 0, startedMs - dueMs);
  }

  all(): readonly (number | null)[] {
    return this.#latest.map((latest, at) => (this.#left[at] === true ? null : latest));
  }
}
