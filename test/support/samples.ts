/** What a scrape says, taken apart. */

/** The samples of a scrape: `name{labels}` → value. */
export async function samples(metrics: {
  readonly scrape: () => Promise<string>;
}): Promise<ReadonlyMap<string, number>> {
  const lines = (await metrics.scrape()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}
