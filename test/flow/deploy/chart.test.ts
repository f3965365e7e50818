/** The chart, without Helm: which values its schema refuses, and that each value is described and used. `helm.test.ts` beside it asks Helm. */
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { renderChart } from '../../../scripts/generate/chart.mjs';
import { renderValuesSchema } from '../../../scripts/generate/chart-schema.mjs';
import { EVERYTHING, type Parsed, REFUSED } from '../../support/kubernetes.ts';
import { read } from '../../support/repository.ts';

const CHART = 'deploy/helm/duestream';
const schema: Parsed = JSON.parse(renderValuesSchema());
const defaults: Parsed = parse(read(`${CHART}/values.yaml`));
const accepts = new Ajv({ allErrors: true, strict: false }).compile(schema);

/** Where values are refused; Helm looks at those that were given together with the defaults. */
function refusedIn(given: Readonly<Record<string, Parsed>>): readonly string[] {
  const both = Object.entries(given).map(([name, value]) => [name, { ...defaults[name], ...value }]);
  accepts({ ...defaults, ...Object.fromEntries(both) });
  return (accepts.errors ?? []).map(({ instancePath, params }) =>
    [instancePath, ...Object.values(params).map(String)].join(' '),
  );
}

describe('the values', () => {
  test('that the chart comes with are accepted, and so is one of each', () => {
    expect(refusedIn({})).toEqual([]);
    const { imagePullSecrets: _, ...sections } = EVERYTHING;
    expect(refusedIn(sections)).toEqual([]);
  });

  test.for(REFUSED)('are refused with %s', ([, given, where]) => {
    expect(refusedIn(given)).toContainEqual(expect.stringContaining(where));
  });

  test('have a description each, and the schema has no other', () => {
    const open = ['config', 'podSecurityContext', 'securityContext'];
    const namesIn = (values: Parsed, path: string): readonly string[] =>
      Object.entries(values).flatMap(([name, value]) => {
        const at = path === '' ? name : `${path}.${name}`;
        const isSection = schemaAt(at)?.properties !== undefined && !open.includes(at) && name !== 'pod';
        return isSection ? namesIn(value, at) : [at];
      });
    const said = namesIn(defaults, '');
    expect(said.filter((path) => !schemaAt(path)?.description)).toEqual([]);
    const isLeaf = (path: string) => open.includes(path) || path.endsWith('.pod');
    const allowedIn = (one: Parsed, path: string): readonly string[] =>
      Object.entries(one.properties ?? {}).flatMap(([name, inner]: readonly [string, Parsed]) => {
        const at = path === '' ? name : `${path}.${name}`;
        return inner.properties && !isLeaf(at) ? allowedIn(inner, at) : [at];
      });
    expect(
      allowedIn(schema, '')
        .filter((path) => path !== 'global')
        .sort(),
    ).toEqual([...said].sort());
  });

  test('are checked by patterns that Helm knows too: it has neither lookaheads nor properties of characters', () => {
    const patterns = [...renderValuesSchema().matchAll(/"pattern": (".*")/g)].map(([, text = '""']) =>
      JSON.parse(text),
    );
    expect(patterns.length).toBeGreaterThan(5);
    expect(patterns.filter((pattern) => /\(\?|\\p\{|\\[1-9]/.test(pattern))).toEqual([]);
  });

  test('are all used by a template', () => {
    const templates = Object.keys(renderChart()).concat('_helpers.tpl');
    const text = templates.map((name) => read(`${CHART}/templates/${name}`)).join('\n');
    const names = Object.entries(defaults).flatMap(([name, value]: readonly [string, Parsed]) =>
      schema.properties[name].properties && name !== 'config'
        ? Object.keys(value).map((one) => `${name}.${one}`)
        : [name],
    );
    expect(names.filter((name) => !text.includes(`.Values.${name}`))).toEqual([]);
  });
});

function schemaAt(path: string): Parsed {
  return path.split('.').reduce((one: Parsed, name) => one?.properties?.[name], schema);
}

test('its notes say what is still missing, and nothing that is there', () => {
  const notes = (values: object) => String(renderChart({ values: { ...values } })['NOTES.txt']);
  expect(notes({})).toContain('kubectl create secret generic duestream --namespace jobs');
  expect(notes({})).toContain('set worker.enabled and worker.image');
  expect(notes({})).toContain('at these ports alone: 6379');
  expect(notes(EVERYTHING)).not.toMatch(/create secret|No worker/);
  expect(notes(EVERYTHING)).toContain('6380, 26379');
});
