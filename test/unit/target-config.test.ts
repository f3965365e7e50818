/** `targets` of the configuration: from a file, the environment and code, and that no secret of it is shown. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { configRows } from '../../src/cli/commands/config-print.ts';
import { defineConfig, loadConfig } from '../../src/config/load.ts';

const SECRET = 'whsec_Q0FOQVJZQ0FOQVJZQ0FOQVJZQ0FOQVJZ';
let cwd = '';
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'due-targets-'));
});
afterAll(() => rmSync(cwd, { recursive: true }));

const load = (env: Readonly<Record<string, string>>, config?: string) =>
  loadConfig({ env, cwd, flags: config === undefined ? {} : { config } });

test('one secret or several belong to a name, in a file and in code', () => {
  writeFileSync(
    join(cwd, 'a.yaml'),
    `roles: [dispatcher]\ntargets:\n  secrets: { main: [${SECRET}, ${SECRET}], other: ${SECRET} }\n  values: { crm: 'Bearer x' }\n`,
  );
  const { targets, roles } = load({}, 'a.yaml').config;
  expect(roles).toEqual(['dispatcher']);
  expect(targets).toMatchObject({ secrets: { main: [SECRET, SECRET], other: [SECRET] }, values: { crm: 'Bearer x' } });
  expect(defineConfig({ targets: { secrets: { main: SECRET } } }).targets.secrets).toEqual({ main: [SECRET] });
});

test('the environment has them as JSON, or the path of a file with it', () => {
  const text = JSON.stringify({ main: SECRET });
  writeFileSync(join(cwd, 'secrets.json'), `${text}\n`);
  const path = join(cwd, 'secrets.json');
  for (const env of [{ DUESTREAM_TARGETS__SECRETS: text }, { DUESTREAM_TARGETS__SECRETS_FILE: path }]) {
    expect(load(env).config.targets.secrets).toEqual({ main: [SECRET] });
  }
});

test.each([
  ['no JSON', '{'],
  ['a list', `["${SECRET}"]`],
  ['a name with a space', `{"a b": "${SECRET}"}`],
  ['an empty list', '{"main": []}'],
  ['a number', '{"main": 7}'],
])('%s is refused, and not shown', (_, text) => {
  const act = () => load({ DUESTREAM_TARGETS__SECRETS: text });
  expect(act).toThrow(/^targets\.secrets is hidden here \(DUESTREAM_TARGETS__SECRETS\); allowed: at most 1000 names/);
});

test('nobody who looks at the configuration sees a secret or a value', () => {
  const loaded = load({
    DUESTREAM_TARGETS__SECRETS: JSON.stringify({ main: SECRET }),
    DUESTREAM_TARGETS__VALUES: JSON.stringify({ crm: 'Bearer x-canary' }),
  });
  const shown = JSON.stringify(configRows(loaded));
  expect(shown).toContain('targets.secrets');
  for (const canary of [SECRET, 'x-canary']) expect(shown).not.toContain(canary);
});

test.each([
  [{ allow: ['10.0.0.0/33'] }, /targets\.allow/],
  [{ nat64: ['64:ff9b::/64'] }, /targets\.nat64/],
  [{ proxy: 'http://user:secret@egress:3128' }, /targets\.proxy/],
  [{ certificates: { crm: { cert: 'a.pem', key: 'a.key' } } }, /targets\.certificates/],
])('what is none of a network, prefix, proxy or certificate is refused: %j', (targets, says) => {
  expect(() => defineConfig({ targets } as never)).toThrow(says);
});
