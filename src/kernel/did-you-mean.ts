/** The known name that a misspelt one most likely meant. */

/**
 * A hint to append to a refusal: `; did you mean emails?`, or nothing when no name is near.
 *
 * @example hintOf('emial', ['emails', 'orders']) // '; did you mean emails?'
 */
export function hintOf(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** The nearest of `known` within a third of its letters (at least two), or undefined. Case does not count. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const limit = Math.max(2, Math.floor(name.length / 3));
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = edits(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY))
      best = { name: candidate, distance };
  }
  return best?.name;
}

/** How many letters must be added, removed, changed or swapped with their neighbour to turn one text into the other. */
function edits(from: string, to: string): number {
  let twoAbove: readonly number[] = [];
  let above: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const changed = (above[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const swapped =
        row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
          ? (twoAbove[column - 2] ?? 0) + 1
          : Number.POSITIVE_INFINITY;
      current.push(Math.min(changed, swapped, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    twoAbove = above;
    above = current;
  }
  return above[to.length] ?? 0;
}
