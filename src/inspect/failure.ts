/** Anything thrown while somebody looked at Redis or changed something there → a code of the catalogue. */
import { DuestreamError, type ErrorCode } from '../kernel/errors.ts';
import { type Outage, outageOf } from '../redis/connection/outage.ts';

export function codeOf(error: unknown): ErrorCode {
  return error instanceof DuestreamError ? error.code : BY_OUTAGE[outageOf(error)];
}

const BY_OUTAGE: Readonly<Record<Outage, ErrorCode>> = {
  away: 'unavailable',
  lost: 'unavailable',
  busy: 'unavailable',
  readonly: 'unavailable',
  full: 'out-of-memory',
  fatal: 'refused',
  'no-group': 'failed',
  unknown: 'failed',
};
