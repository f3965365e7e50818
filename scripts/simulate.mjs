/**
 * `npm run simulate -- --seed 7 --hours 1`: our processes in virtual time over a model of Redis.
 *
 *  --seed 7      everything follows from it
 *  --seeds 50    as many seeds, from --seed on, each in a process of its own; says which of them found something
 *  --hours 0.1   virtual time per seed, at least
 *  --faults a,b  only these (test/sim/world/faults.mjs names them); empty = none
 *  --density 3  three times as many faults
 *  --alone       one process, mover and worker, whose passes are relays
 *  --gated       the queue has limits, which are judged
 *  --linger 20   due jobs wait so many ms for company
 *  --ahead 20    jobs are handed to workers so many ms before they are due
 *  --trace       prints everything that happens
 *
 * Ends with 1 when anything is wrong. What runs is the build in `dist` and the scripts in `lua`; `--product` names
 * another folder that has both.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { simulate } from '../test/sim/world/run.mjs';
import { argumentsFor, refuse, wholeNumber } from './arguments.mjs';
import { build } from './steps.mjs';

const here = fileURLToPath(import.meta.url);
const root = fileURLToPath(new URL('..', import.meta.url));
const values = argumentsFor(here, {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  hours: { type: 'string', default: '0.1' },
  faults: { type: 'string' },
  density: { type: 'string', default: '1' },
  alone: { type: 'boolean', default: false },
  gated: { type: 'boolean', default: false },
  linger: { type: 'string' },
  ahead: { type: 'string' },
  trace: { type: 'boolean', default: false },
  product: { type: 'string' },
});
const seed = wholeNumber(here, 'seed', { given: values.seed, otherwise: 1, from: 0, to: 2 ** 31 });
const linger = wholeNumber(here, 'linger', { given: values.linger, otherwise: 0, from: 0, to: 1000 });
const ahead = wholeNumber(here, 'ahead', { given: values.ahead, otherwise: 0, from: 0, to: 100 });
const seeds = wholeNumber(here, 'seeds', { given: values.seeds, otherwise: 1, from: 1, to: 100_000 });
const [hours, density] = [positive('hours', values.hours), positive('density', values.density)];
if (values.product === undefined) await build();
process.exitCode = (await (seeds > 1 ? many() : one())) ? 0 : 1;

/** @param {string} flag @param {string} given */
function positive(flag, given) {
  return Number(given) > 0 ? Number(given) : refuse(here, `--${flag} ${given}; allowed: a number greater than 0`);
}

async function one() {
  const result = await simulate({
    product: values.product ?? root,
    seed,
    hours,
    density,
    alone: values.alone,
    gated: values.gated,
    linger,
    ahead,
    ...(values.faults === undefined ? {} : { faults: values.faults.split(',').filter((name) => name !== '') }),
    ...(values.trace ? { print: console.log } : {}),
  });
  console.log(JSON.stringify(result, null, 1));
  return result.anomalies.length === 0;
}

async function many() {
  const begunMs = performance.now();
  let [failed, virtualMs] = [0, 0];
  for (let next = seed; next < seed + seeds; next += 1) {
    const rest = ['--hours', values.hours, '--density', values.density, '--product', values.product ?? root];
    if (values.faults !== undefined) rest.push('--faults', values.faults);
    if (values.alone) rest.push('--alone');
    if (values.gated) rest.push('--gated');
    rest.push('--linger', String(linger), '--ahead', String(ahead));
    const ended = promisify(execFile)(process.execPath, [here, '--seed', String(next), ...rest]);
    const { stdout } = await ended.catch((/** @type {{ stdout: string }} */ error) => error);
    const { anomalies = [{ kind: 'BROKEN', id: '', detail: stdout }], ...told } = JSON.parse(stdout || '{}');
    virtualMs += told.virtualMs ?? 0;
    if (anomalies.length > 0) failed += 1;
    console.log(`seed ${next}: ${anomalies.length === 0 ? 'nothing' : JSON.stringify(anomalies)}`);
  }
  const minutes = (performance.now() - begunMs) / 60_000;
  const hours = virtualMs / 3600e3;
  console.log(
    `${failed} of ${seeds} seeds found something; ${hours.toFixed(2)} hours in ${minutes.toFixed(1)} minutes`,
  );
  return failed === 0;
}
