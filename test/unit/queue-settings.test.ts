/**
 * The table of the settings of a queue: every row is whole, and its example goes through every window.
 */
import { describe, expect, test } from 'vitest';
import { defineConfig, queueOptions } from '../../src/config/load.ts';
import { type ConfigInput, options } from '../../src/config/options.ts';
import { settingShapes } from '../../src/http/api/setting-shapes.ts';
import { defineQueue } from '../../src/job/queue.ts';
import {
  decodeSettings,
  encodeSettings,
  fieldsOfWord,
  groupLimitRows,
  parseGroupLimits,
  parseSettings,
  saidOf,
  settingFields,
  settingNames,
  settingOf,
  settingWords,
} from '../../src/job/queue-settings.ts';
import { read } from '../support/repository.ts';

describe.each(settingWords)('%s', (word) => {
  const setting = settingOf(word);

  test('has a comment for editors, and a sentence for people', () => {
    const [, comment = ''] =
      new RegExp(`/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n {2}${word}: \\{`).exec(read('src/job/queue-settings.ts')) ?? [];
    expect(comment).toMatch(/^\s+(\* )?[A-Z`]/);
    expect(setting.doc).toMatch(/^[A-Z][^|\n]*[^.\n]$/);
    expect(setting.allowed).not.toMatch(/[|\n]/);
    expect(read('docs/reference/openapi.json')).toContain(JSON.stringify(setting.doc).slice(1, -1));
  });

  test('is said again as it was said, and comes out of the registry as it went in', () => {
    expect(setting.samples).not.toEqual([]);
    for (const said of setting.samples) {
      const settings = parseSettings({ [word]: said });
      expect(saidOf(settings)).toEqual({ [word]: said });
      expect(decodeSettings(encodeSettings(settings))).toEqual(settings);
      expect(Object.keys(settings)).not.toEqual([]);
      expect(fieldsOfWord(word)).toEqual(expect.arrayContaining(Object.keys(settings)));
      expect(defineQueue('q', { [word]: said })).toMatchObject(settings);
    }
  });

  test('is taken by the file and over HTTP as by code, and nothing else that is odd', () => {
    const inFile = (value: unknown) => defineConfig({ queues: { q: { [word]: value } } } as ConfigInput);
    for (const said of setting.samples) {
      expect(parseSettings(queueOptions(inFile(said), 'q'))).toEqual(parseSettings({ [word]: said }));
      expect(settingShapes[word].parse(said)).toEqual(said);
    }
    for (const odd of [Number.NaN, '', -1, null, { odd: 1 }, [7]]) {
      expect(() => parseSettings({ [word]: odd })).toThrow(/ (is|are) .*(allowed|did you mean)/);
      // A line of the file whose value was deleted says nothing.
      if (odd !== null) expect(() => inFile(odd)).toThrow(/allowed/);
      expect(settingShapes[word].safeParse(odd).success).toBe(false);
    }
    expect(options.find(({ key }) => key === `queues.*.${word}`)).toMatchObject({ allowed: setting.allowed });
  });
});

test.each(groupLimitRows)('$name of a group is read as it is said', ({ name, row }) => {
  const said = row.kind === 'rate' ? '20/s' : 3;
  const settings = parseSettings({ groups: { acme: { [name]: said } } });
  expect(settings.groups?.acme).toEqual(parseGroupLimits('acme', { [name]: said }));
  expect(encodeSettings(settings).groups).toMatch(new RegExp(`^\\{"acme":\\{"${row.key}":`));
  expect(decodeSettings(encodeSettings(settings))).toEqual(settings);
});

test('no two settings share a field or a key of a group, and text that nobody can read says nothing', () => {
  expect(new Set(settingNames).size).toBe(settingNames.length);
  expect(new Set(groupLimitRows.map(({ row }) => row.key)).size).toBe(groupLimitRows.length);
  const odd = Object.fromEntries(settingNames.map((name) => [name, '!']));
  // What was meant to hide something hides everything, a queue that is gated stays so, and one that calls a URL is none of workers.
  expect(decodeSettings(odd)).toEqual({ redact: ['*'], target: { url: '' }, fair: true, costs: true });
  expect(settingFields.every(({ kind, limits }) => limits === undefined || kind.atRest !== undefined)).toBe(true);
});
