/**
 * `npm run simulate -- --seed 7 --hours 1`: our processes in virtual time over a model of Redis.
 *
 *  --seed 7      the whole run follows from it
 *  --seeds 50    as many seeds, from --seed on, each in a process of its own
 *  --hours 1     how much virtual time each seed takes at least
 *  --faults a,b  only these (see test/sim/world/faults.mjs)
 *  --trace       prints everything that happens
 */
import { parseArgs } from 'node:util';
import { simulate } from '../test/sim/world/run.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    hours: { type: 'string', default: '0.1' },
    faults: { type: 'string' },
    trace: { type: 'boolean', default: false },
    product: { type: 'string', default: process.cwd() },
  },
});
const result = await simulate({
  product: values.product,
  seed: Number(values.seed),
  hours: Number(values.hours),
  ...(values.faults === undefined ? {} : { faults: values.faults.split(',').filter(Boolean) }),
  ...(values.trace ? { print: console.log } : {}),
});
console.log(JSON.stringify(result, null, 1));
process.exit(result.anomalies.length > 0 ? 1 : 0);
