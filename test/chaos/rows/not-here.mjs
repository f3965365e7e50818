/** Faults of the matrix that no row injects, and why. */

/** Every fault has a number from 1 to this. */
export const FAULTS = 117;

const TAGS = 'refused by Redis itself: `npx vitest run test/redis/one-slot.test.ts`';
const ORACLES = 'nothing breaks: compared with two other libraries by `npm run oracle`';
const TZDATA = 'instants are computed anew at every fire; the rules are part of the Node.js that runs';
const COSTLY = 'refused before anything is stored: `npx vitest run test/unit/cron.test.ts`';
const shown = (/** @type {string} */ path) => `nothing breaks: shown by \`npx vitest run ${path}\``;

/** @type {readonly { id: string, title: string, reason: string }[]} */
export const notHere = [
  { id: 'F54', title: 'scripts whose keys are in two slots', reason: TAGS },
  { id: 'F65', title: 'cron over the change to and from summer time', reason: ORACLES },
  { id: 'F66', title: 'cron on days that do not exist', reason: ORACLES },
  { id: 'F68', title: 'the rules of a time zone change under a schedule', reason: TZDATA },
  { id: 'F78', title: 'a million jobs in one HTTP call', reason: shown('test/flow/api/api-gates.test.ts') },
  { id: 'F80', title: 'HTTP calls without or with a wrong token', reason: shown('test/flow/api/api-access.test.ts') },
  { id: 'F81', title: 'payloads that are markup', reason: shown('test/browser/hostile.test.ts') },
  { id: 'F82', title: 'requests of other sites', reason: shown('test/flow/api/api-gates.test.ts') },
  { id: 'F83', title: 'a dashboard that is open to everybody', reason: shown('test/flow/api/api-access.test.ts') },
  { id: 'F85', title: 'webhooks to addresses inside', reason: shown('test/flow/targets/ssrf.test.ts') },
  { id: 'F89', title: 'cron expressions that cost much', reason: COSTLY },
  { id: 'F90', title: 'slow clients and idle sockets', reason: shown('test/flow/http/http-lifecycle.test.ts') },
];
