/** Workers over HTTP for the bench: claims that are sent by hand, so that each request is counted. */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';

/** @typedef {{ run: string, dueMs: number }} Job */
/** @typedef {{ run: string, end: 'complete' }} End */

const WAIT_MS = 60_000;
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/** One worker, which runs nothing: what it claims is over at once. */
export class Poller {
  /** Requests that were answered. */
  requests = 0;
  #seq = 0;
  #name = `h-bench-${randomBytes(16).toString('hex')}`;
  #url;

  /** @param {string} url of the queue, at the daemon */
  constructor(url) {
    this.#url = url;
  }

  /** @param {{ max?: number, ends?: readonly End[] }} [what] @returns {Promise<readonly Job[]>} */
  async claim({ max = 1, ends = [] } = {}) {
    this.#seq += 1;
    const body = { seq: this.#seq, max, wait: WAIT_MS, running: 0, ends };
    return (await this.#post('claim', body)).jobs;
  }

  /** @param {readonly End[]} runs */
  settle(runs) {
    return this.#post('settle', { runs });
  }

  leave() {
    return this.#post('leave', {});
  }

  /** @param {string} verb @param {object} body */
  async #post(verb, body) {
    const { status, text } = await post(`${this.#url}/${verb}`, JSON.stringify({ worker: this.#name, ...body }));
    this.requests += 1;
    if (status !== 200) throw new Error(`${verb}: ${status} ${text}`);
    return JSON.parse(text);
  }
}

/** @param {readonly Job[]} jobs @returns {readonly End[]} */
export const endsOf = (jobs) => jobs.map(({ run }) => ({ run, end: 'complete' }));

/** @param {string} url @param {string} body @returns {Promise<{ status: number | undefined, text: string }>} */
function post(url, body) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode, text }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
