/** Faults of the matrix that no row injects, and why. */

/** Every fault has a number from 1 to this. */
export const FAULTS = 90;

const SENTINEL = 'Sentinel: this version promises nothing there yet';
const CLUSTER = 'Cluster: this version promises nothing there yet';
const ORACLES = 'nothing breaks: compared with two other libraries by `npm run oracle`';
const TZDATA = 'instants are computed anew at every fire; the rules are part of the Node.js that runs';
const COSTLY = 'refused before anything is stored: `npx vitest run test/unit/cron.test.ts`';
const API = 'there is no HTTP API that takes jobs';
const DASHBOARD = 'there is no dashboard';

/** @type {readonly { id: string, title: string, reason: string }[]} */
export const notHere = [
  { id: 'F47', title: 'the master is killed while its replica lags', reason: SENTINEL },
  { id: 'F48', title: 'the master and its clients are cut off from replica and sentinels', reason: SENTINEL },
  { id: 'F49', title: 'the master freezes, and wakes up when another one is master', reason: SENTINEL },
  { id: 'F50', title: 'a failover by command', reason: SENTINEL },
  { id: 'F51', title: 'all sentinels are away', reason: SENTINEL },
  { id: 'F52', title: 'a failover of one shard', reason: CLUSTER },
  { id: 'F53', title: 'the slot of a live partition moves', reason: CLUSTER },
  { id: 'F54', title: 'scripts whose keys are in two slots', reason: CLUSTER },
  { id: 'F65', title: 'cron over the change to and from summer time', reason: ORACLES },
  { id: 'F66', title: 'cron on days that do not exist', reason: ORACLES },
  { id: 'F68', title: 'the rules of a time zone change under a schedule', reason: TZDATA },
  { id: 'F78', title: 'a million jobs in one HTTP call', reason: API },
  { id: 'F80', title: 'HTTP calls without or with a wrong token', reason: API },
  { id: 'F81', title: 'payloads that are markup', reason: DASHBOARD },
  { id: 'F82', title: 'requests of other sites', reason: DASHBOARD },
  { id: 'F83', title: 'a dashboard that is open to everybody', reason: DASHBOARD },
  { id: 'F85', title: 'webhooks to addresses inside', reason: 'there are no webhooks' },
  { id: 'F89', title: 'cron expressions that cost much', reason: COSTLY },
  { id: 'F90', title: 'slow clients and idle sockets', reason: `${API}; health and metrics listen on loopback` },
];
