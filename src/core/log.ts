/**
 * What the stations need of a logger; pino fits. The default says nothing, so a library never writes to anybody's
 * terminal. Payloads and credentials are never passed to it.
 */

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

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};
