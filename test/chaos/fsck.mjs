/** What the product's own check of the invariants says of a Redis at rest, in words of a complaint. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

const TIMEOUT_MS = 30_000;

/**
 * @param {{ product: string, url: string }} of
 * @returns {Promise<readonly string[]>} one complaint per flaw
 */
export async function flawsOf({ product, url }) {
  const { code, text } = await fsck(product, url);
  const complaints = flawsIn(text);
  return code === 0 || complaints.length > 0 ? complaints : [`fsck ended with ${code}: ${text.slice(0, 300)}`];
}

/** @param {string} text */
function flawsIn(text) {
  try {
    const { partitions = [], control = [] } = JSON.parse(text);
    const flaws = [...partitions.flatMap((/** @type {{ flaws: unknown[] }} */ { flaws }) => flaws), ...control];
    return flaws.map(({ invariant, what, name, means }) => `fsck: ${invariant} ${what} ${name}: ${means}`);
  } catch {
    return [];
  }
}

/**
 * @param {string} product
 * @param {string} url
 * @returns {Promise<{ code: number, text: string }>}
 */
function fsck(product, url) {
  const args = [join(product, 'dist', 'main.js'), 'fsck', '--json', '--redis', url];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) || 1 : 0, text: stdout || stderr });
    });
  });
}
