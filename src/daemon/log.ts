/**
 * JSON lines on standard output, one per event. Never a payload, never a credential: events carry neither, texts from
 * outside are cut to one line before they become events, and what looks like a URL with a password is masked here.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import { escapeControls } from '../kernel/errors.ts';

export interface LogOptions {
  readonly level: string;
  readonly role: string;
  readonly id?: string;
  /** For tests; default standard output. */
  readonly to?: DestinationStream;
}

export function createLog({ level, role, id, to }: LogOptions): Logger {
  const options = {
    level,
    base: { role, pid: process.pid, ...(id === undefined ? {} : { id }) },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    // Names of jobs and of workers are somebody else's words.
    hooks: { streamWrite: escapeControls },
    redact: { paths: ['password', '*.password', 'token', 'data', 'payload', '*.data', '*.payload'], censor: '***' },
  };
  return pino(options, to ?? standardOutput());
}

/**
 * Never waits for whoever reads the log, and never ends or holds up the process because nobody does. Lines are written at
 * once; with a least length, pino tells when all of them are. Lines that cannot be written are kept up to a limit, tried again
 * with the next line, and forgotten at the end: there pino would try for ever.
 */
function standardOutput(): DestinationStream {
  const out = pino.destination({ dest: 1, minLength: 1, sync: false, maxLength: UNWRITTEN_MAX });
  out.on('error', () => undefined);
  out.flushSync = () => undefined;
  return out;
}

/** Characters. */
const UNWRITTEN_MAX = 16 * 1024 * 1024;
