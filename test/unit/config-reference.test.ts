/** What the generated files say of the configuration is true. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { renderSchema, yaml } from '../../scripts/generate/configuration.mjs';
import { loadConfig } from '../../src/config/load.ts';
import { options } from '../../src/config/options.ts';
import { envName } from '../../src/config/table.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const defaults = loadConfig({ env: {}, cwd: '/nowhere' }).config;

test('config/duestream.schema.json has every option, and no other name', () => {
  const { properties } = JSON.parse(renderSchema(options));
  expect(namesOf(JSON.parse(renderSchema(options))).toSorted()).toEqual(options.map(({ key }) => key).toSorted());
  expect(properties.http.properties.port).toMatchObject({
    type: 'integer',
    minimum: 0,
    maximum: 65_535,
    default: 7420,
  });
  expect(properties.http.properties.color.enum).toContain('red');
  expect(properties.mover.properties.lease).toMatchObject({ type: ['string', 'integer'], default: '5s' });
  expect(properties.queues.additionalProperties.properties.attempts).toMatchObject({ type: 'integer', minimum: 1 });
});

interface Section {
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, Section>>;
}

/** Options that stand in a schema: what is no section. */
function namesOf({ additionalProperties, properties = {} }: Section, path: readonly string[] = []): readonly string[] {
  const any =
    typeof additionalProperties === 'object' && additionalProperties !== null ? additionalProperties : undefined;
  return [
    ...(any === undefined ? [] : namesOf(any, [...path, '*'])),
    ...Object.entries(properties).flatMap(([name, one]) =>
      one.properties === undefined ? [[...path, name].join('.')] : namesOf(one, [...path, name]),
    ),
  ];
}

test('the defaults, as the reference writes them, are those that count', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'duestream-config-'));
  const lines = options.flatMap((option) =>
    option.fallback === undefined
      ? []
      : [`${option.key.replace('.', ': { ')}: ${yaml(option)}${option.key.includes('.') ? ' }' : ''}`],
  );
  for (const line of lines) {
    writeFileSync(join(cwd, 'duestream.yaml'), `${line}\n`);
    expect(loadConfig({ env: {}, cwd }).config, line).toEqual(defaults);
  }
  rmSync(cwd, { recursive: true });
});

test('the production example is accepted and says more than the defaults', () => {
  const env = { DUESTREAM_HTTP__TOKEN: 'a-token-of-some-length' };
  const { config } = loadConfig({ flags: { config: 'config/production.example.yaml' }, env, cwd: root });
  expect(config).not.toEqual(defaults);
  expect(Object.keys(config.queues)).not.toEqual([]);
});

test('every option has a default or belongs to a queue, and says what is allowed in one line', () => {
  for (const { key, fallback, doc, allowed } of options) {
    expect(fallback === undefined, key).toBe(key.startsWith('queues.'));
    expect(doc, key).toMatch(/^[A-Z].*\.$/);
    expect(allowed, key).toMatch(/^[^|\n]+$/);
  }
});

test('no two options share a key, a variable or a flag', () => {
  const names = (of: (option: (typeof options)[number]) => string | undefined) =>
    options.map(of).filter((name) => name !== undefined);
  for (const list of [names(({ key }) => key), names(envName), names(({ flag }) => flag)]) {
    expect(new Set(list).size).toBe(list.length);
  }
});
