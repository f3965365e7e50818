/** The fault matrix as far as it can be run here: one table, in the order of the faults' numbers. */
import { abuseRows } from './rows-abuse.mjs';
import { accessRows } from './rows-access.mjs';
import { dataRows } from './rows-data.mjs';
import { diskRows } from './rows-disk.mjs';
import { fleetRows } from './rows-fleet.mjs';
import { foreignRows } from './rows-foreign.mjs';
import { handlerRows } from './rows-handlers.mjs';
import { loadRows } from './rows-load.mjs';
import { networkRows } from './rows-network.mjs';
import { processRows } from './rows-processes.mjs';
import { redisRows } from './rows-redis.mjs';
import { scheduleRows } from './rows-schedules.mjs';
import { timeRows } from './rows-time.mjs';

/** @type {readonly import('./run.mjs').Row[]} */
export const rows = [
  ...[...processRows, ...redisRows, ...dataRows, ...diskRows, ...foreignRows, ...networkRows],
  ...[...timeRows, ...loadRows, ...abuseRows, ...handlerRows, ...fleetRows, ...accessRows, ...scheduleRows],
].sort((a, b) => numberOf(a.id) - numberOf(b.id));

/**
 * A row once for each mode that it is to be run in; those that leave it open are run in the one that is asked for.
 *
 * @param {import('./run.mjs').Row} row
 * @returns {readonly import('./run.mjs').Row[]}
 */
export function variantsOf(row) {
  return row.variants ? row.variants.map((mode) => ({ ...row, mode })) : [row];
}

/** @param {string} id */
function numberOf(id) {
  return Number(id.slice(1));
}
