/**
 * A real SMTP server on the loopback that keeps a journal of every mail it was given. The journal is the witness of the
 * demo: it is written by the receiving side, with one clock, and knows nothing of Redis.
 *
 * A mail counts as received when its last byte is here, before the answer: if the sender dies while it waits for the
 * answer, the mail is out all the same, and the next worker sends it again. That is what at-least-once means, and why
 * each mail carries the token of its start.
 */
import { once } from 'node:events';
import { SMTPServer } from 'smtp-server';
import { chanceOf } from './chance.mjs';
import { headersOf } from './headers.mjs';

const MAIL_BYTES_MAX = 64 * 1024;
const CLIENTS_MAX = 200;
const CLOSE_MS = 500;

/** @typedef {250 | 451 | 550} Code accepted, try again later, never */
/**
 * @typedef {object} Received
 * @property {string} id of the job
 * @property {string} token
 * @property {number} claimedDueMs the due the worker was told; later than planned after a retry
 * @property {string} worker its pid
 * @property {string} to
 * @property {string} subject
 * @property {number} receivedMs epoch ms, at the last byte
 * @property {number} answeredMs epoch ms
 * @property {Code} code
 */
/** @typedef {import('./plan.mjs').Fate} Fate */

/**
 * @param {{ fateOf: (id: string, email: string) => Fate }} rules
 */
export async function openPostOffice({ fateOf }) {
  /** @type {Received[]} */
  const journal = [];
  /** @type {Set<Received>} */
  const unanswered = new Set();
  /** @type {Map<string, number>} */
  const refusals = new Map();

  /** @param {Buffer} mail */
  const take = async (mail) => {
    const receivedMs = Date.now();
    const headers = headersOf(mail);
    const id = headers.get('x-job-id') ?? '';
    const to = headers.get('to') ?? '';
    const refused = refusals.get(id) ?? 0;
    const code = answerTo(fateOf(id, (/<([^>]+)>/.exec(to)?.[1] ?? to).trim()), refused);
    if (code !== 250) refusals.set(id, refused + 1);
    /** @type {Received} */
    const received = {
      id,
      token: headers.get('x-job-token') ?? '',
      claimedDueMs: Number(headers.get('x-job-due')),
      worker: headers.get('x-worker-pid') ?? '',
      to,
      subject: headers.get('subject') ?? '',
      receivedMs,
      answeredMs: receivedMs,
      code,
    };
    journal.push(received);
    unanswered.add(received);
    await new Promise((resolve) => setTimeout(resolve, thinkingMs(id)));
    unanswered.delete(received);
    received.answeredMs = Date.now();
    return code;
  };

  const server = new SMTPServer({
    name: 'post-office.example',
    size: MAIL_BYTES_MAX,
    maxClients: CLIENTS_MAX,
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: CLOSE_MS,
    onData(stream, _session, callback) {
      /** @type {Buffer[]} */
      const chunks = [];
      stream.on('data', (chunk) => chunks.push(chunk));
      stream.once('end', () => {
        take(Buffer.concat(chunks)).then((code) => callback(refusal(code)), callback);
      });
    },
  });
  // A worker that was killed leaves a broken connection behind; its mail is in the journal already.
  server.on('error', () => {});
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  const address = server.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;

  return {
    url: `smtp://127.0.0.1:${port}`,
    journal: /** @type {readonly Received[]} */ (journal),
    /** Mails that are here and wait for their answer, by the pid of their worker. */
    unansweredBy: (/** @type {number} */ pid) => [...unanswered].filter(({ worker }) => worker === String(pid)).length,
    close: () => new Promise((resolve) => server.close(() => resolve(undefined))),
  };
}

/**
 * @param {Fate} fate
 * @param {number} refused how often this mail was refused before
 * @returns {Code}
 */
function answerTo(fate, refused) {
  if (fate.kind === 'refused') return 550;
  return fate.kind === 'refused-first' && refused < fate.times ? 451 : 250;
}

/** @param {Code} code */
function refusal(code) {
  if (code === 250) return null;
  const text = code === 550 ? '5.1.1 there is no such mailbox' : '4.7.1 greylisted, try again later';
  return Object.assign(new Error(text), { responseCode: code });
}

/**
 * Statements take longer, so that two workers really meet at the lock of an account.
 *
 * @param {string} id
 */
function thinkingMs(id) {
  return id.startsWith('statement:') ? 150 : 60 + Math.round(120 * chanceOf(`think ${id}`));
}
