/**
 * Renders the tables of keys as `docs/reference/keys.md`. Pure.  */

/** @typedef {import('../../src/redis/keys.ts').KeyRow} KeyRow */
/** @typedef {Readonly<Record<string, KeyRow>>} Table */

const HEAD = `| key | type | expires | content | who takes away, and the bound |
|---|---|---|---|---|`;

/** @param {{ readonly partition: Table, readonly control: Table, readonly limit: Table }} tables */
export function renderKeys({ partition, control, limit }) {
  return `<!-- Generated from src/redis/keys.ts by \`npm run generate\`; a test compares it. -->
# Keys

Every key of duestream in Redis, and there are no others. \`duestream doctor --keys\` says which of them hold another type than they
should, and which have a time to live (TTL) and should not, or the other way round: see
[check that everything is whole](../how-to/check-the-data.md). It also counts what is kept beside the jobs, and tells what is left there of
queues, processes and schedules that are gone.

Each key has a bound that holds while a queue is busy, and not only when it is empty: whoever adds something takes away what is
old, or the leader does, or the key has a TTL. How much there is of scheduled jobs, queues and schedules, their users decide.

Producers in other languages need few of them: see [the wire protocol](../wire-protocol.md#keys).

## Of a partition

\`K\` is \`<namespace>:v1:{<queue>:<partition>}\`, by default \`duestream:v1:{emails:0}\`. The braces are the hash tag that keeps
one partition in one slot of Redis Cluster. \`duestream queues rm\` removes all of them.

${HEAD}
${rows('K', partition)}

## Of a namespace

\`C\` is \`<namespace>:v1:{control}\`, by default \`duestream:v1:{control}\`.

${HEAD}
${rows('C', control)}

## Of a limit that several queues share

\`L\` is \`<namespace>:v1:{limit:<name>}\`. \`duestream limits rm\` removes it.

${HEAD}
${rows('L', limit)}

A member is \`j:\` and the id for jobs of ours; any other bytes are a *bare* job, which a foreign producer put with a plain
\`ZADD\`. A channel is used with \`SPUBLISH\` and \`SSUBSCRIBE\`.
`;
}

/** @param {string} place @param {Table} table */
function rows(place, table) {
  return Object.entries(table)
    .map(
      ([name, row]) =>
        `| \`${place}:${name}${row.per ? `:<${row.per}>` : ''}\` | ${row.type} | ${ttl(row)} | ${row.doc} | ${row.bound ?? '–'} |`,
    )
    .join('\n');
}

/** @param {KeyRow} row */
function ttl({ type, ttl: most }) {
  if (type === 'channel') return '–';
  if (most === undefined) return 'never';
  return typeof most === 'number' ? `within ${most / 60_000} min` : most;
}
