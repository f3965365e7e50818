/** Each option of a job by its flag, as a key of `--bulk` and in a schedule: the record is the one that the library makes. */
import { beforeEach, describe, expect, test } from 'vitest';
import { dashed } from '../../../src/cli/terminal/job-flags.ts';
import { planJob } from '../../../src/client/calls/plan.ts';
import { decodeRecord } from '../../../src/job/codec.ts';
import { optionNames, optionsOfFires } from '../../../src/job/fields.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { decodeDefinition } from '../../../src/schedule/text.ts';
import { useCli } from '../../support/cli.ts';
import { exampleOf } from '../../support/job-options.ts';
import { usePartition } from '../../support/partition.ts';

/** A queue that takes groups and priorities as well. */
const target = { url: 'https://api.example.com/due' };
const GATED = { namespace: 't', queue: 'q', partitions: 1, fair: true, costs: true, target } as const;

const cli = useCli();
const the = usePartition();

beforeEach(begin);

/** The queue, and the set of the example. */
async function begin(): Promise<void> {
  await declareQueue(the.redis, GATED);
  await run(['sets', 'create', 'q', String(exampleOf('set').set)]);
}

const run = (args: readonly string[], input = '') =>
  cli.run([...args, '--redis', the.server.url, '--namespace', 't'], { input });

const flagsOf = (options: object): readonly string[] =>
  Object.entries(options).flatMap(([name, value]) => {
    // A list is said one at a time, by a flag of its own name in the singular.
    if (Array.isArray(value)) return value.flatMap((one) => [`--${dashed(name).replace(/s$/, '')}`, String(one)]);
    if (name === 'debounce') return [`--${name}`, [value.wait, value.max].join(',')];
    if (name === 'headers') return Object.entries(value).flatMap((one) => ['--header', one.join('=')]);
    return [`--${dashed(name)}`, typeof value === 'object' ? JSON.stringify(value) : String(value)];
  });

/** What a record says beside its due, which moves with the clock where there is only a delay. */
function contentOf(record: string | null | undefined): object {
  const { askedDueMs: _due, ...content } = decodeRecord(record ?? '');
  return content;
}

test.each(optionNames)('%s is the same by its flag, in a line of --bulk and in the library', async (name) => {
  const options = { id: 'a', ...exampleOf(name) };
  const limits = { horizonMs: 3650 * 86_400_000, dataBytesMax: 1000, nowMs: Date.now() };
  const plan = planJob(undefined, options, limits);
  const planned = contentOf(plan.record);
  for (const [args, input] of [
    [flagsOf(options), ''],
    [['--bulk', '-'], JSON.stringify(options)],
  ] as const) {
    const { code, err } = await run(['schedule', 'q', ...args], input);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(contentOf(await the.redis.hget(the.keys.jobs, plan.member))).toEqual(planned);
    await the.redis.flushall();
    await begin();
  }
});

describe('schedules put', () => {
  test.each(optionsOfFires)('takes $name', async ({ name, option }) => {
    const own = { maxLateness: '1h', [name]: option.example };
    const { code, err } = await run(['schedules', 'put', 'n', '--queue', 'q', '--every', '1h', ...flagsOf(own)]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const stored = (await the.redis.hget(controlKeys('t').schedules, 'n')) ?? '';
    expect(decodeDefinition('n', stored).input).toMatchObject(own);
  });
});
