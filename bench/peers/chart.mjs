/** Groups of horizontal bars as SVG: readable on a light and on a dark page, and as text by a screen reader. */

/**
 * @typedef {object} Group
 * @property {string} name
 * @property {readonly { readonly name: string, readonly value: number }[]} bars
 */

const WIDTH = 720;
const NAMES = 160;
const VALUES = 90;
const BAR = 18;
const COLOURS = ['#2f7ed8', '#c0504d', '#8a8f98', '#5fa55a', '#8e63b5', '#c98a1b', '#3aa6a6'];

/** @param {{ title: string, unit: string, groups: readonly Group[] }} chart @returns {string} */
export function chartOf({ title, unit, groups }) {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)), Number.MIN_VALUE);
  const names = [...new Set(groups.flatMap(({ bars }) => bars.map(({ name }) => name)))];
  const colour = (/** @type {string} */ name) => COLOURS[names.indexOf(name) % COLOURS.length];
  let y = 44;
  const parts = groups.flatMap(({ name, bars }) => {
    const head = `<text x="8" y="${y}" font-weight="600">${escaped(name)}</text>`;
    y += 8;
    const lines = bars.map((bar) => {
      const width = Math.max(1, (bar.value / most) * (WIDTH - NAMES - VALUES));
      const top = y;
      y += BAR + 4;
      return [
        `<text x="${NAMES - 8}" y="${top + 13}" text-anchor="end">${escaped(bar.name)}</text>`,
        `<rect x="${NAMES}" y="${top}" width="${width.toFixed(1)}" height="${BAR}" rx="2" fill="${colour(bar.name)}"/>`,
        `<text x="${(NAMES + width + 6).toFixed(1)}" y="${top + 13}">${shown(bar.value)} ${escaped(unit)}</text>`,
      ].join('');
    });
    y += 22;
    return [head, ...lines];
  });
  const told = groups.map(
    ({ name, bars }) => `${name}: ${bars.map((bar) => `${bar.name} ${shown(bar.value)}`).join(', ')}`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="12">
<title id="t">${escaped(title)}</title><desc id="d">${escaped(told.join('; '))} (${escaped(unit)})</desc>
<style>text{fill:#1f2328}@media (prefers-color-scheme:dark){text{fill:#e6edf3}}</style>
<text x="8" y="20" font-size="14" font-weight="700">${escaped(title)}</text>
${parts.join('\n')}
</svg>
`;
}

/** @param {number} value */
const shown = (value) =>
  value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Math.round(value * 10) / 10);

/** @param {string} text */
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
