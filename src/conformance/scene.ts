/** One trial on the stage: its queue, what happened in it, its programs, and a worker of the kit that takes over what was lost. */
import { randomBytes } from 'node:crypto';
import type { Client } from '../client/client.ts';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Faults, FaultyLine } from './faulty-line.ts';
import type { DaemonOrders } from './orders.ts';
import { DaemonProcess, Program } from './processes.ts';
import { type Fields, fieldsOf, Happenings, listOf } from './record.ts';
import type { Deed } from './rules.ts';

/** What all trials share. */
export interface Stage {
  readonly command: string;
  /** Of the process, for the program. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly orders: DaemonOrders;
  readonly client: Client;
  /** The daemons that live; one that was killed is undefined until the next trial. */
  readonly daemons: (DaemonProcess | undefined)[];
  readonly lines: readonly FaultyLine[];
  /** Where programs find the lines. */
  readonly urls: readonly string[];
  /** Aborts when somebody interrupts, or the time is up. */
  readonly signal: AbortSignal;
}

/** Something that the program must do was not seen within the patience of the kit. */
export class NotSeen extends Error {}

/** Longer than a claim waits, so that a client that is slow to hear is no client that is wrong. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 10;

export class Scene {
  readonly happened = new Happenings();
  readonly queue: string;
  readonly #stage: Stage;
  readonly #programs: Program[] = [];
  #stoppedMs = Number.POSITIVE_INFINITY;

  constructor(stage: Stage, queue: string, faults: Faults = {}) {
    this.#stage = stage;
    this.queue = queue;
    for (const line of stage.lines) line.play({ queue, happened: this.happened, faults });
  }

  /** Starts the program that is tried. */
  begin(env: Readonly<Record<string, string>> = {}): Program {
    const { command, urls } = this.#stage;
    const own = { ...this.#stage.env, DUESTREAM_URLS: urls.join(','), DUESTREAM_QUEUE: this.queue, ...env };
    const program = new Program({ command, env: own, happened: this.happened, number: this.#programs.length });
    this.#programs.push(program);
    return program;
  }

  /** Tells it to stop, as an init system does. */
  stop(program: Program): void {
    this.#stoppedMs = systemClock.monotonicMs();
    program.signal('SIGTERM');
  }

  /** For how long a program has been told to stop; negative: it was not. */
  get stoppingMs(): number {
    return systemClock.monotonicMs() - this.#stoppedMs;
  }

  async schedule(
    deed: Deed,
    ids: readonly string[],
    options: { readonly timeout?: number; readonly attempts?: number } = {},
  ) {
    const { client } = this.#stage;
    for (const id of ids) await client.schedule(this.queue, { do: deed }, { id, delay: 0, ...options });
  }

  async cancel(id: string): Promise<void> {
    await this.#stage.client.cancel(this.queue, id);
  }

  async stateOf(id: string): Promise<string | undefined> {
    return (await this.#stage.client.get(this.queue, id))?.state;
  }

  /** @throws NotSeen; the reason of the signal */
  async until(what: string, isSo: () => boolean | Promise<boolean>, patienceMs = PATIENCE_MS): Promise<void> {
    const { signal } = this.#stage;
    const endMs = systemClock.monotonicMs() + patienceMs;
    for (;;) {
      signal.throwIfAborted();
      if (await isSo()) return;
      const [ended] = this.#programs.every(({ isOver }) => isOver) ? this.#programs.slice(-1) : [];
      if (ended && systemClock.monotonicMs() > endMs - patienceMs / 2) {
        throw new NotSeen(`${what}: not seen, and the program has ended: ${ended.words || 'it said nothing'}`);
      }
      if (systemClock.monotonicMs() > endMs) throw new NotSeen(`${what}: not seen within ${patienceMs / 1000} s`);
      await systemClock.sleep(LOOK_MS, signal);
    }
  }

  /** Resolves when the program is in a handler of this job. */
  began(id: string): Promise<void> {
    return this.until(`a handler prints "began ${id}"`, () => this.happened.said('began', id).length > 0);
  }

  async states(ids: readonly string[], state: string): Promise<void> {
    await this.until(`${ids.length} jobs are ${state}`, async () => {
      const states = await Promise.all(ids.map((id) => this.stateOf(id)));
      return states.every((one) => one === state);
    });
  }

  /** Waits for a time that is part of the trial, such as a lease. */
  async rest(ms: number): Promise<void> {
    await systemClock.sleep(ms, this.#stage.signal);
    this.#stage.signal.throwIfAborted();
  }

  /** A worker of the kit takes this job, which another one has lost, and completes it. */
  async takeOver(id: string): Promise<void> {
    const worker = `h-kit-${randomBytes(16).toString('hex')}`;
    let seq = 0;
    await this.until(`another worker is handed ${id}`, async () => {
      seq += 1;
      const answer = await this.#ask('claim', { worker, seq, max: 1, wait: 1000 });
      const job = listOf(answer.jobs).find((one) => one.id === id);
      if (job === undefined) return false;
      await this.#ask('complete', { worker, run: job.run });
      return true;
    });
  }

  async killDaemon(which: number): Promise<void> {
    const daemon = this.#stage.daemons[which];
    this.#stage.daemons[which] = undefined;
    await daemon?.kill();
  }

  /** Ends the programs, and starts what the trial killed. */
  async close(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.end()));
    const { daemons, lines, orders } = this.#stage;
    for (const line of lines) line.end(this.queue);
    for (const [at, daemon] of daemons.entries()) daemons[at] = daemon ?? (await DaemonProcess.start(orders));
  }

  async #ask(verb: string, body: Fields): Promise<Fields> {
    const daemon = this.#stage.daemons.find((one) => one !== undefined);
    if (!daemon) throw new DuestreamError('failed', 'no daemon of the run lives');
    const response = await fetch(`${daemon.url}/v1/queues/${this.queue}/${verb}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return fieldsOf(await response.json());
  }
}
