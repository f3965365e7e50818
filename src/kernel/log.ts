/**
 * What the stations need of a logger; pino fits. The default says nothing, so a library never writes to anybody's
 * terminal. Payloads and credentials are never passed to it.
 */
import { type Callbacks, createCallbacks } from './callbacks.ts';
import { show } from './duration.ts';
import { DuestreamError } from './errors.ts';
import { spanIds } from './telemetry.ts';

type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** What a logger must have. A logger of pino fits as it is. */
export interface Log {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
  /** The same with fields that every line has. */
  readonly child: (fields: Record<string, unknown>) => Log;
  /** Calls back when all that was said is written, or cannot be. */
  readonly flush?: (over: () => void) => void;
}

/**
 * A logger that a caller gives, or one that says nothing. What it throws later ends in `callbacks.ts`. What is said while a span of
 * OpenTelemetry goes on has its ids, in whichever log it is said.
 *
 * @throws DuestreamError `bad-input` for one that lacks a method, such as `console`, which has no `child`
 */
export function parseLog(log: Log | undefined): Log {
  if (log === undefined || log === silentLog) return silentLog;
  const given: unknown = log;
  const isObject = (typeof given === 'object' || typeof given === 'function') && given !== null;
  const lacks = METHODS.filter((name) => !isObject || typeof Reflect.get(given, name) !== 'function');
  if (lacks.length === 0) return guardOf(log);
  const what = isObject ? `has no method ${lacks.join(', ')}` : `is ${show(given)}`;
  throw new DuestreamError('bad-input', `log ${what}; allowed: a logger of pino, or one with ${METHODS.join(', ')}`);
}

const METHODS = ['debug', 'info', 'warn', 'error', 'child'] as const;

function guardOf(log: Log): Log {
  const guard = guards.get(log) ?? guarded(log, createCallbacks('the log method'));
  guards.set(log, guard).set(guard, guard);
  return guard;
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

function traced(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const ids = spanIds();
  return ids ? { ...ids, ...fields } : fields;
}

/** One per log, so that what it fails at is told once, and for a guard itself. */
const guards = new WeakMap<Log, Log>();

function guarded(log: Log, callbacks: Callbacks): Log {
  const write =
    (method: 'debug' | 'info' | 'warn' | 'error'): Write =>
    (fields, message) =>
      callbacks.call(method, () => log[method](traced(fields), message), undefined);
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child(fields) {
      // Without a child of its own its lines lack the fields.
      let made = log;
      const make = () => {
        made = log.child(fields);
        return made;
      };
      callbacks.call('child', make, undefined);
      return guarded(made, callbacks);
    },
    flush(over) {
      callbacks.call('flush', () => (log.flush ? log.flush(over) : over()), undefined);
    },
  };
}
