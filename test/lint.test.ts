/**
 * Proof that the promise rules bite: each planted line must be reported, and the same code written well must not be.
 * The text is linted in place of this very file, so nothing is written to disk and the project's own types are used.
 */
import { fileURLToPath } from 'node:url';
import { ESLint } from 'eslint';
import { describe, expect, test } from 'vitest';

const filePath = fileURLToPath(import.meta.url);
const eslint = new ESLint({ cwd: fileURLToPath(new URL('..', import.meta.url)) });

const CAREFUL = `
import { Redis } from 'ioredis';
const redis = new Redis({ lazyConnect: true });
export async function careful(queue: 'a' | 'b'): Promise<string> {
  await redis.set('key', 'value');
  await redis.pipeline().zadd('key', 1, 'member').exec();
  redis.once('ready', () => void redis.get('key'));
  switch (queue) {
    case 'a':
      return 'first';
    case 'b':
      return 'second';
  }
}
`;

const PLANTED = [
  { bug: 'a command that is not awaited', line: "redis.set('key', 'value');", rule: 'no-floating-promises' },
  { bug: 'a script call that is not awaited', line: "redis.evalsha('sha', 1, 'key');", rule: 'no-floating-promises' },
  { bug: 'a pipeline that is not awaited', line: "redis.pipeline().set('a', 1).exec();", rule: 'no-floating-promises' },
  {
    bug: 'an async function given to setInterval',
    line: "setInterval(async () => { await redis.get('key'); }, 1000);",
    rule: 'no-misused-promises',
  },
  {
    bug: 'an async listener',
    line: "redis.on('ready', async () => { await redis.get('key'); });",
    rule: 'no-misused-promises',
  },
  { bug: 'a promise used as a condition', line: "if (redis.exists('key')) void 0;", rule: 'no-misused-promises' },
  { bug: 'an await of what is no promise', line: 'await redis.status;', rule: 'await-thenable' },
  {
    bug: 'a switch that forgets a member of a closed union',
    line: "switch (queue) { case 'a': break; }",
    rule: 'switch-exhaustiveness-check',
  },
];

describe('the promise rules', () => {
  test('accept code that waits for what it starts', async () => {
    expect(await reported(CAREFUL)).toEqual([]);
  });

  test('report every planted bug, each on its own line', async () => {
    const [head = '', tail = ''] = CAREFUL.split(/(?= {2}switch)/);
    const first = head.split('\n').length;
    const found = await reported(head + PLANTED.map(({ line }) => `${line}\n`).join('') + tail);
    expect(found).toEqual(
      PLANTED.map(({ rule }, index) => ({ line: first + index, rule: `@typescript-eslint/${rule}` })),
    );
  });

  test.each(['src/main.ts', 'src/worker/consumer.ts', 'test/support/redis.ts', 'scripts/up.mjs'])(
    'cover %s',
    async (file) => {
      const { rules } = await eslint.calculateConfigForFile(file);
      for (const { rule } of PLANTED) expect(rules[`@typescript-eslint/${rule}`][0]).toBe(2);
    },
  );
});

describe('a function fits a screen', () => {
  const LONG = `function long() {\n${'void 0;\n'.repeat(60)}}\n`;

  test('60 lines with its first and last pass, 61 do not; blanks and comments are not counted', async () => {
    const inSource = fileURLToPath(new URL('../src/main.ts', import.meta.url));
    const rules = async (text: string) => {
      const results = await eslint.lintText(text, { filePath: inSource });
      return results.flatMap(({ messages }) => messages.map(({ ruleId }) => ruleId));
    };
    expect(await rules(LONG)).toEqual(['max-lines-per-function']);
    expect(await rules(LONG.replace('void 0;\nvoid 0;\n', '// Why.\n\n'))).toEqual([]);
  });

  test.each(['src/worker/consumer.ts', 'src/mover/mover.ts', 'src/client/batch.ts', 'src/core/loop.ts'])(
    'also in %s',
    async (file) => {
      const { rules } = await eslint.calculateConfigForFile(file);
      expect(rules['max-lines-per-function'].slice(0, 2)).toMatchObject([2, { max: 60 }]);
    },
  );
});

async function reported(text: string): Promise<{ line: number; rule: string | null }[]> {
  const results = await eslint.lintText(text, { filePath });
  return results.flatMap(({ messages }) => messages.map(({ line, ruleId }) => ({ line, rule: ruleId })));
}
