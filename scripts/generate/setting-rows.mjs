/** The settings of a queue as the pages offer them. A browser cannot read `job/queue-settings.ts`: its checks need libraries. */

import { groupLimitRows, perGroupRows, settingOf, settingWords } from '../../src/job/queue-settings.ts';
import { durationText } from '../../src/kernel/duration.ts';

const HEAD = `/**
 * The settings of a queue as its page shows and changes them: what each is, and what is allowed.
 * Made by \`npm run generate\`; edit src/job/queue-settings.ts.
 */

/** One value. */
export interface SettingPart {
  readonly name: string;
  readonly kind: 'limit' | 'count' | 'duration' | 'rate' | 'share' | 'flag' | 'word';
  readonly doc: string;
  readonly allowed: string;
  /** What holds where it is not said. */
  readonly otherwise?: string;
}

export interface SettingRow {
  readonly name: string;
  readonly kind: 'limit' | 'duration' | 'rates' | 'paths' | 'names' | 'target' | 'yes' | 'bounds' | 'perGroup' | 'groups';
  readonly doc: string;
  readonly allowed: string;
  /** The scope that a change needs. */
  readonly scope: 'write' | 'admin';
  readonly parts: readonly SettingPart[];
}
`;

/** @returns {string} */
export function renderSettingRows() {
  const rows = settingWords.map((name) => {
    const setting = settingOf(name);
    const { kind, doc, allowed, scope = 'write' } = setting;
    return { name, kind, doc, allowed, scope, parts: partsOf(setting) };
  });
  return `${HEAD}
export const settingRows: readonly SettingRow[] = ${JSON.stringify(rows, null, 2)};

/** What a group may have of its own. */
export const groupLimits: readonly SettingPart[] = ${JSON.stringify(groupLimitRows.map(limitOf), null, 2)};
`;
}

/** @param {import('../../src/job/queue-settings.ts').QueueSetting} setting */
function partsOf(setting) {
  if (setting.kind === 'perGroup') return perGroupRows.map(limitOf);
  if (setting.kind !== 'bounds') return [];
  return Object.entries(setting.parts).map(([name, { kind, help, allowed, otherwise }]) => {
    const text = kind === 'duration' ? durationText(Number(otherwise)) : String(otherwise);
    return { name, kind, doc: help, allowed, otherwise: text };
  });
}

/** @param {(typeof perGroupRows)[number]} limit */
const limitOf = ({ name, row: { kind, doc, allowed } }) => ({ name, kind, doc, allowed });
