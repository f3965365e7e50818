/** A job as the API tells it. */

export interface Attempted {
  readonly atMs: number;
  readonly attempt: number;
  readonly kind: string;
  readonly message?: string;
  readonly stack?: string;
}

export interface Deferred {
  readonly times: number;
  readonly lastMs: number;
  readonly reason?: string;
}

export interface Event {
  readonly atMs: number;
  readonly kind: string;
  readonly attempt?: number;
  readonly owner?: string;
  readonly tookMs?: number;
  readonly message?: string;
  readonly stack?: string;
}

export interface Result {
  readonly kind: string;
  readonly value?: unknown;
  readonly bytes?: number;
  readonly why?: string;
}

export interface Past {
  readonly outcome: string;
  readonly overMs: number;
  readonly attempts: number;
  readonly owner?: string;
  readonly tookMs?: number;
  readonly result?: Result;
  readonly deadLetter?: string;
}

export interface Job {
  readonly id: string;
  readonly queue: string;
  readonly partition: number;
  readonly bare: boolean;
  readonly state: string;
  readonly name?: string;
  readonly tags?: readonly string[];
  readonly data?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly hidden: boolean;
  readonly options: Readonly<Record<string, unknown>>;
  readonly etag?: string;
  readonly dueMs?: number;
  readonly askedDueMs?: number;
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  readonly generation: number;
  readonly cancelRequested: boolean;
  readonly owner?: string;
  readonly startedMs?: number;
  readonly history: readonly Attempted[];
  readonly deferred?: Deferred;
  readonly overMs?: number;
  readonly deadLetter?: string;
  readonly reason?: string;
  readonly readable: boolean;
  readonly result?: Result;
  readonly past?: readonly Past[];
  readonly timeline: readonly Event[];
}

export const isOver = ({ state }: Job): boolean => !['scheduled', 'ready', 'running'].includes(state);
export const isWaiting = ({ state }: Job): boolean => state === 'scheduled' || state === 'ready';
