/**
 * A histogram for what happens once per job or once per pass. An observation of the library's own makes several objects and
 * a text, which was a fifth of all that a worker spent on a job; here it is a search in a short list and three additions.
 * All else is the library's: the registry, the text, the checks of names and bounds.
 */
import {
  Gauge,
  Histogram,
  type HistogramConfiguration,
  type MetricObjectWithValues,
  type MetricValueWithName,
} from 'prom-client';

type Labels = Readonly<Record<string, string>>;

/** The observations with one set of labels. */
export class Series {
  readonly labels: Labels;
  /** How many were within each bound and above the one before it; the last: above all. */
  readonly counts: number[];
  readonly #of: Pick<JobHistogram, 'bounds' | 'record'>;
  sum = 0;
  count = 0;
  /** The largest since the windows were turned last, and of the window before. */
  largest = 0;
  before = 0;

  constructor(labels: Labels, of: Pick<JobHistogram, 'bounds' | 'record'>) {
    this.labels = labels;
    this.#of = of;
    this.counts = Array.from({ length: of.bounds.length + 1 }, () => 0);
  }

  /** The same value so many times. */
  observe(value: number, times = 1): void {
    const { bounds, record } = this.#of;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + times;
    this.sum += value * times;
    this.count += times;
    if (value > this.largest) this.largest = value;
    if (record) for (let nth = 0; nth < times; nth += 1) record(value, this.labels);
  }
}

const WINDOW_MS = 60_000;

/** The largest observation of a histogram, which its bounds do not tell. It is read at each scrape. */
export function largestOf(
  histogram: JobHistogram,
  options: { readonly name: string; readonly help: string },
  nowMs: () => number,
) {
  return new Gauge({
    ...options,
    labelNames: ['queue'],
    registers: [],
    collect() {
      const values = new Map<string, number>();
      for (const { labels, value } of histogram.largest(nowMs())) {
        values.set(labels.queue ?? '', Math.max(values.get(labels.queue ?? '') ?? 0, value));
      }
      this.reset();
      for (const [queue, value] of values) this.set({ queue }, value);
    },
  });
}

export class JobHistogram extends Histogram<string> {
  readonly #name: string;
  readonly #help: string;
  readonly bounds: readonly number[];
  /** Told each observation besides, one by one. */
  record: ((value: number, labels: Labels) => void) | undefined = undefined;
  readonly #series = new Map<string, Series>();
  readonly #collect: HistogramConfiguration<string>['collect'];
  #turnedMs = Number.NEGATIVE_INFINITY;

  constructor(options: HistogramConfiguration<string> & { readonly buckets: number[] }) {
    super(options);
    this.#name = options.name;
    this.#help = options.help;
    this.bounds = options.buckets;
    this.#collect = options.collect;
  }

  /** Keep it: to look it up costs more than to observe. */
  series(labels: Labels): Series {
    const key = JSON.stringify(labels);
    const series = this.#series.get(key) ?? new Series(labels, this);
    this.#series.set(key, series);
    return series;
  }

  override reset(): void {
    // The library's constructor resets as well, before there is anything.
    if (#series in this) this.#series.clear();
  }

  /** Of each set of labels, the largest of the last one or two windows; a window is a minute, or the time between two scrapes. */
  largest(nowMs: number): readonly { readonly labels: Labels; readonly value: number }[] {
    const isOver = nowMs - this.#turnedMs >= WINDOW_MS;
    const all = [...this.#series.values()];
    const found = all.map((one) => ({ labels: one.labels, value: Math.max(one.largest, one.before) }));
    if (!isOver) return found;
    this.#turnedMs = nowMs;
    for (const one of all) [one.before, one.largest] = [one.largest, 0];
    return found;
  }

  /** All of one queue. */
  removeQueue(queue: string): void {
    for (const [key, { labels }] of this.#series) if (labels.queue === queue) this.#series.delete(key);
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    await this.#collect?.call(this);
    const values = [...this.#series.values()].flatMap((one) => this.#valuesOf(one));
    const type = 'histogram' as unknown as MetricObjectWithValues<MetricValueWithName<string>>['type'];
    return { name: this.#name, help: this.#help, type, aggregator: 'sum', values, collect: () => undefined };
  }

  /** What the registry asks for when it writes the text. */
  getForPromString(): ReturnType<JobHistogram['get']> {
    return this.get();
  }

  #valuesOf({ labels, counts, sum, count }: Series): MetricValueWithName<string>[] {
    const bucket = `${this.#name}_bucket`;
    let within = 0;
    const buckets = this.bounds.map((le, at) => {
      within += counts[at] ?? 0;
      return { labels: { le, ...labels }, value: within, metricName: bucket };
    });
    return [
      ...buckets,
      { labels: { le: '+Inf', ...labels }, value: count, metricName: bucket },
      { labels, value: sum, metricName: `${this.#name}_sum` },
      { labels, value: count, metricName: `${this.#name}_count` },
    ];
  }
}
