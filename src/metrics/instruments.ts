/**
 * The metrics as instruments of OpenTelemetry, where an application has registered an SDK that reads metrics: the same families by the same
 * names, so that a rule or a chart fits both. Counters and gauges are read when the SDK asks, as at a scrape; what a histogram is told
 * is told to both.
 *
 * The SDK has to be there before what it is to measure is made; an SDK that comes later sees nothing of it.
 */
import type { BatchObservableCallback, Meter, Observable } from '@opentelemetry/api';
import { Counter, Gauge, type Registry } from 'prom-client';
import { registered } from '../kernel/telemetry.ts';
import { version } from '../kernel/version.ts';
import { isOff, SCOPE } from '../telemetry/names.ts';
import { JobHistogram } from './histogram.ts';

/** A family that is read, and the instrument that shows it. */
interface Shown {
  readonly family: Counter | Gauge;
  readonly instrument: Observable;
}

const NOTHING = (): void => undefined;

/** @returns is told at each change whether anybody fills the families of the registry: only then an SDK is shown them */
export function createShowing(registry: Registry): (isFilled: boolean) => void {
  let hide = NOTHING;
  return (isFilled) => {
    hide();
    hide = isFilled ? show(registry) : NOTHING;
  };
}

/** All that the registry has of ours, until the returned function is called. */
function show(registry: Registry): () => void {
  const provider = registered()?.metrics;
  if (!provider || isOff()) return NOTHING;
  const meter = provider.getMeter(SCOPE, version);
  const ours = registry.getMetricsAsArray().filter(({ name }) => name.startsWith('duestream_'));
  const told: JobHistogram[] = [];
  const shown: Shown[] = [];
  for (const { name, help } of ours) {
    const family: unknown = registry.getSingleMetric(name);
    const options = { description: help, unit: unitOf(name) };
    if (family instanceof JobHistogram) {
      record(meter, family, { name, ...options });
      told.push(family);
    } else if (family instanceof Counter) {
      shown.push({ family, instrument: meter.createObservableCounter(name, options) });
    } else if (family instanceof Gauge) {
      shown.push({ family, instrument: meter.createObservableGauge(name, options) });
    }
  }
  const stop = read(meter, shown);
  return () => {
    stop();
    for (const family of told) family.record = undefined;
  };
}

function record(
  meter: Meter,
  family: JobHistogram,
  { name, ...options }: { readonly name: string; readonly description: string; readonly unit: string },
): void {
  const advice = { explicitBucketBoundaries: [...family.bounds] };
  const histogram = meter.createHistogram(name, { ...options, advice });
  family.record = (value, labels) => histogram.record(value, labels);
}

/** The families of one reading are of one moment, as in a scrape. */
function read(meter: Meter, shown: readonly Shown[]): () => void {
  const observe: BatchObservableCallback = async (result) => {
    const all = await Promise.all(
      shown.map(async ({ family, instrument }) => ({ instrument, told: await family.get() })),
    );
    for (const { instrument, told } of all) {
      for (const { value, labels } of told.values) result.observe(instrument, value, labels);
    }
  };
  const instruments = shown.map(({ instrument }) => instrument);
  meter.addBatchObservableCallback(observe, instruments);
  return () => meter.removeBatchObservableCallback(observe, instruments);
}

/** As UCUM has them; what is counted has none. */
function unitOf(name: string): string {
  if (name.endsWith('_seconds')) return 's';
  return name.endsWith('_bytes') ? 'By' : '';
}
