/**
 * The ids of jobs that another job leads to: the next step of `commitJob`, a compensation job.
 *
 *   order-7                   ─▶ {order-7}then:<token>.00 ─▶ {order-7}then:<token>.00 ─▶ {order-7}abandoned:<token>
 *   {schedule:nightly}<time>  ─▶ {schedule:nightly}<time>!then:<token>.00
 *
 * What must always hold: the new job lives in the partition of the old one, since one script makes it; the id never grows,
 * however long a chain is; it has at most 128 bytes. It begins with the id of the first job, its *root*, so that it is found
 * by this prefix. The token is the number of one start in a partition, so no other job has this id. A root that is too long
 * is cut, and a digest of it takes the place of the rest.
 */
import { createHash } from 'node:crypto';
import { ID_BYTES_MAX, type JobId } from './job.ts';
import { crc16, routingText } from './routing.ts';

/** What the id says the job is for: the next step, or the job that takes half-done work back. */
type Purpose = `then:${string}.${string}` | `abandoned:${string}`;

const MADE = /!?(?:then:\d+\.\d+|abandoned:\d+)$/;
/** `!abandoned:` and a token. */
const SUFFIX_BYTES_MAX = 27;
const ROOT_BYTES_MAX = ID_BYTES_MAX - SUFFIX_BYTES_MAX;
const DIGEST_CHARS = 16;
/** What is kept of an id that is too long for its own braces. */
const KEPT_CHARS = 64;
/** Two characters of base 36. Of two pairs together, 25 have each checksum of 16 bits. */
const PAIRS = Array.from({ length: 36 ** 2 }, (_, nth) => nth.toString(36).padStart(2, '0'));

/**
 * The id of a job that the job of this id leads to.
 *
 * @example derivedId('order-7', 'then:1763719000000000.00') // '{order-7}then:1763719000000000.00'
 */
export function derivedId(id: string, purpose: Purpose): JobId {
  const root = rootOf(id);
  return `${root}${root.endsWith('}') ? '' : '!'}${purpose}` as JobId;
}

/** Begins with the hash tag that leads to the partition of the id, and is its own root. */
function rootOf(id: string): string {
  const routing = routingText(id);
  if (routing === id) return /[{}]/.test(id) || id.length + 2 > ROOT_BYTES_MAX ? shortTag(id) : `{${id}}`;
  const root = id.replace(MADE, '');
  if (root.length <= ROOT_BYTES_MAX) return root;
  const tagEnd = id.indexOf('}', id.indexOf('{')) + 1;
  if (tagEnd + 1 + DIGEST_CHARS > ROOT_BYTES_MAX) return shortTag(routing);
  return `${root.slice(0, ROOT_BYTES_MAX - 1 - DIGEST_CHARS)}~${digestOf(root)}`;
}

/** A hash tag of fewer bytes that leads where the text leads, however many partitions there are. */
function shortTag(text: string): string {
  const short = `${text.replace(/[{}]/g, '.').slice(0, KEPT_CHARS)}~${digestOf(text)}`;
  const [wanted, before] = [crc16(Buffer.from(text)), crc16(Buffer.from(short))];
  // The sum of two parts is that of the first with zeros behind it, and that of the second from zero: both are looked up.
  const seconds = new Map(PAIRS.map((pair) => [crc16(Buffer.from(pair)), pair]));
  for (const first of PAIRS) {
    const second = seconds.get(crc16(Buffer.from(`${first}\0\0`), before) ^ wanted);
    if (second !== undefined) return `{${short}${first}${second}}`;
  }
  throw new Error(`no end of ${short} has the checksum ${wanted}`);
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_CHARS);
