/**
 * Circles of imports: files of which each needs the others, so that none can be read, tested or moved alone. Files that
 * import nothing, or that nobody imports, are taken away until there are none; what is left goes in circles, or leads
 * from one to another.
 */
export function circularImports(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  let left = [...graph].flatMap(([from, all]) => all.map((to) => ({ from, to })));
  for (let before = -1; before !== left.length; ) {
    before = left.length;
    const [importing, imported] = [new Set(left.map(({ from }) => from)), new Set(left.map(({ to }) => to))];
    left = left.filter(({ from, to }) => importing.has(to) && imported.has(from));
  }
  return left.map(({ from, to }) => `${from} -> ${to}`).sort();
}
