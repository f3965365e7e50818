/** The fault matrix as far as it can be run here: one table, in the order of the faults' numbers. */
import { abuseRows } from './abuse.mjs';
import { accessRows } from './access.mjs';
import { aheadRows } from './ahead.mjs';
import { clusterRows } from './cluster.mjs';
import { dataRows } from './data.mjs';
import { diskRows } from './disk.mjs';
import { fleetRows } from './fleet.mjs';
import { foreignRows } from './foreign.mjs';
import { gateRows } from './gates.mjs';
import { handlerRows } from './handlers.mjs';
import { lateRows } from './late.mjs';
import { loadRows } from './load.mjs';
import { networkRows } from './network.mjs';
import { outboxRows } from './outbox.mjs';
import { processRows } from './processes.mjs';
import { redisRows } from './redis.mjs';
import { remoteRows } from './remote.mjs';
import { scheduleRows } from './schedules.mjs';
import { sentinelRows } from './sentinel.mjs';
import { tagRows } from './tags.mjs';
import { timeRows } from './time.mjs';

/** @type {readonly import('../stage/run.mjs').Row[]} */
export const rows = [
  ...[...processRows, ...redisRows, ...dataRows, ...diskRows, ...foreignRows, ...networkRows],
  ...[...timeRows, ...loadRows, ...abuseRows, ...handlerRows, ...fleetRows, ...accessRows, ...scheduleRows],
  ...[
    ...clusterRows,
    ...sentinelRows,
    ...gateRows,
    ...tagRows,
    ...lateRows,
    ...outboxRows,
    ...aheadRows,
    ...remoteRows,
  ],
].sort((a, b) => numberOf(a.id) - numberOf(b.id));

/**
 * A row once for each mode that it is to be run in; those that leave it open are run in the one that is asked for.
 *
 * @param {import('../stage/run.mjs').Row} row
 * @returns {readonly import('../stage/run.mjs').Row[]}
 */
export function variantsOf(row) {
  return row.variants ? row.variants.map((mode) => ({ ...row, mode })) : [row];
}

/** @param {string} id */
function numberOf(id) {
  return Number(id.slice(1));
}
