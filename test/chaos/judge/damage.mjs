/** What the product's own check of the invariants says of a Redis at rest, in words of a complaint. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

const TIMEOUT_MS = 120_000;

/**
 * @param {{ product: string, url: string }} of
 * @returns {Promise<readonly string[]>} one complaint per flaw
 */
export async function flawsOf({ product, url }) {
  return complaintsOf(await looked(product, url));
}

/**
 * An answer counts only if it can be read, looked at something, and ended as it says.
 *
 * @param {{ code: number, text: string }} answer
 * @returns {readonly string[]}
 */
export function complaintsOf({ code, text }) {
  const flaws = flawsIn(text);
  const start = text.slice(0, 300);
  if (flaws === undefined) return [`doctor --keys ended with ${code} and cannot be read: ${start}`];
  if ((code === 0) !== (flaws.length === 0)) return [...flaws, `doctor --keys ended with ${code}: ${start}`];
  return flaws;
}

/** @param {string} text @returns {readonly string[] | undefined} */
function flawsIn(text) {
  try {
    const { partitions, control } = JSON.parse(text);
    const flaws = [
      ...partitions.flatMap((/** @type {{ flaws: readonly object[] }} */ { flaws }) => [...flaws]),
      ...control,
    ];
    if (partitions.length === 0 && flaws.length === 0) return undefined;
    return flaws.map(({ invariant, what, name, means }) => `doctor: ${invariant} ${what} ${name}: ${means}`);
  } catch {
    return undefined;
  }
}

/**
 * @param {string} product
 * @param {string} url
 * @returns {Promise<{ code: number, text: string }>}
 */
function looked(product, url) {
  const args = [join(product, 'dist', 'main.js'), 'doctor', '--keys', '--json', '--redis', url];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) || 1 : 0, text: stdout || stderr });
    });
  });
}
