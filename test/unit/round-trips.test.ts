/** The round trips of a worker, with a Redis whose replies come when the test says so. */
import { afterEach, expect, it, vi } from 'vitest';
import { markOf } from '../../src/job/record-header.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import { breathe, fetching, LEASE_MS, RECORD, runOf, TRUSTED_MS } from '../support/fetching.ts';

type Line = ReturnType<typeof fetching>;
const lines: Line[] = [];
function open(...options: Parameters<typeof fetching>): Line {
  const line = fetching(...options);
  lines.push(line);
  return line;
}
/** All workers of a process share one quarantine: nothing may seem to run on, or to wait, after its test. */
afterEach(async () => {
  for (const line of lines.splice(0)) await line.close();
});

/** A read brings as many as were asked for, and they run. */
async function full(line: Line, ...names: readonly string[]): Promise<void> {
  const passed = await line.pass();
  await line.arrives(0, ...names.map(line.delivery));
  expect(passed.isOver()).toBe(true);
  const started = line.next();
  expect([started.verb, started.given]).toEqual(['serve', names]);
  await started.answer();
  expect(line.running()).toEqual(names);
}

it('what is over brings the next, half of the slots at a time, and no more run than there are slots', async () => {
  const line = open();
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a', 'b');
  const one = line.next();
  expect(one).toMatchObject({ verb: 'serve', over: ['a', 'b'], take: 2 });
  await line.end('c', 'd');
  const other = line.next();
  expect(other).toMatchObject({ over: ['c', 'd'], take: 2 });
  expect([line.inFlight.busy(), line.inFlight.free()]).toEqual([0, 0]);
  const passed = await line.pass();
  await other.answer({ taken: ['g', 'h'].map((id) => runOf(line.delivery(id))) });
  await one.answer({ taken: ['e', 'f'].map((id) => runOf(line.delivery(id))) });
  expect([line.running(), line.most(), passed.isOver()]).toEqual([['e', 'f', 'g', 'h'], 4, false]);
  expect(line.heard.of('job.completed').map(({ id }) => id)).toEqual(['c', 'd', 'a', 'b']);
});

it('a round trip that brings less than it asked for ends in a read that waits', async () => {
  const line = open();
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a', 'b');
  await line.next().answer({ taken: [runOf(line.delivery('e'))] });
  expect([line.running(), line.roundTrips.hasMore()]).toEqual([['c', 'd', 'e'], false]);
  await line.pass();
  expect(line.reads).toEqual(['wait', 'wait']);
});

it('where nothing more waits, a completion waits for company', async () => {
  const line = open();
  const passed = await line.pass();
  await line.arrives(0, line.delivery('a'), line.delivery('b'));
  expect(passed.isOver()).toBe(true);
  await line.next().answer();
  await line.end('a');
  await line.end('b');
  expect(line.asked).toEqual([]);
  await line.ring();
  expect(line.next()).toMatchObject({ over: ['a', 'b'], take: 0 });
});

it('where due jobs linger, completions wait for so much longer, and for no more than that', async () => {
  const line = open({ lingerMs: 20 });
  await line.pass();
  await line.arrives(0, line.delivery('a'), line.delivery('b'));
  await line.next().answer();
  await line.end('a');
  await line.end('b');
  expect([line.asked, line.timed]).toEqual([[], [25]]);
  await line.ring();
  expect(line.next()).toMatchObject({ over: ['a', 'b'], take: 0 });
});

it('a completion that lingers goes at once when the worker finds more to do, or stops', async () => {
  const line = open({ lingerMs: 1000 });
  await line.pass();
  await line.arrives(0, line.delivery('a'), line.delivery('b'), line.delivery('c'));
  await line.next().answer();
  await line.end('a');
  for (const ref of line.refs) line.roundTrips.expectMore(ref);
  await line.end('b');
  expect(line.next()).toMatchObject({ over: ['a', 'b'] });
  await line.end('c');
  const closed = line.roundTrips.close();
  expect(line.next()).toMatchObject({ over: ['c'] });
  await line.close();
  await closed;
});

it('in a gated queue a completion makes room for another job, and does not linger', async () => {
  const line = open({ lingerMs: 1000 });
  await line.pass();
  await line.arrives(0, line.delivery('a'), line.delivery('b'));
  await line.next().answer({ waiting: 0 });
  await line.end('a');
  expect([line.asked, line.timed]).toEqual([[], [5]]);
});

it('a completion travels with the next start', async () => {
  const line = open();
  await line.pass();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  await line.end('a');
  await line.pass();
  await line.arrives(0, line.delivery('b'));
  expect(line.next()).toMatchObject({ over: ['a'], given: ['b'] });
  await line.ring();
  expect(line.asked).toEqual([]);
});

it('of more jobs that are over at once than a call may complete, the rest has a call as well', async () => {
  const line = open({ concurrency: 400 });
  const names = Array.from({ length: 250 }, (_, at) => `n${at}`);
  await line.pass();
  await line.arrives(0, ...names.map(line.delivery));
  while (line.asked.length > 0) await line.next().answer();
  const ended = line.end(...names);
  // A read was under way meanwhile, and its start takes along what a call may have.
  const taken = line.refs.map((ref) => line.starter.takeOver(ref, [line.delivery('x')]));
  await ended;
  await line.ring();
  const over = [];
  while (line.asked.length > 0) {
    const asked = line.next();
    over.push(...asked.over);
    await asked.answer();
    await line.ring();
  }
  await Promise.all(taken);
  expect([over.length, new Set(over).size, line.inFlight.size()]).toEqual([250, 250, 1]);
});

it('without a reply what is over is completed by itself, and told once', async () => {
  const line = open();
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a', 'b');
  await line.next().fail();
  const again = line.next();
  expect(again).toMatchObject({ verb: 'complete', over: ['a', 'b'], marks: [markOf(RECORD), markOf(RECORD)] });
  expect([line.inFlight.free(), line.roundTrips.hasMore()]).toEqual([2, false]);
  await again.answer({ completed: ['already', 'fenced'] });
  expect(line.heard.of('job.completed').map(({ id }) => id)).toEqual(['a']);
  expect(line.heard.of('job.fenced').map(({ id }) => id)).toEqual(['b']);
  expect(line.inFlight.size()).toBe(2);
});

it('without a reply what was given is started by itself, and runs once', async () => {
  const line = open();
  await line.pass();
  const delivery = line.delivery('a');
  await line.arrives(0, delivery);
  await line.next().fail();
  const again = line.next();
  expect(again).toMatchObject({ verb: 'start', given: ['a'] });
  await again.answer({ taken: [runOf(delivery, 'again')] });
  expect([line.begun, line.inFlight.size()]).toEqual([['a'], 1]);
});

it('an entry that a round trip without a reply had delivered comes by adoption, and runs once', async () => {
  const line = open();
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a');
  await line.next().fail();
  await line.next().answer();
  const delivery = line.delivery('e');
  const taken = [...line.refs, ...line.refs].map((ref) => line.starter.takeOver(ref, [delivery]));
  await breathe();
  await line.next().answer({ taken: [runOf(delivery, 'again')] });
  await Promise.all(taken);
  expect([line.asked, line.begun]).toEqual([[], ['a', 'b', 'c', 'd', 'e']]);
});

it('a round trip that finds no group ends in a read, which makes it again', async () => {
  const line = open();
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a', 'b');
  await line.next().answer({ refusal: 'NOGROUP No such key' });
  expect([line.roundTrips.hasMore(), line.inFlight.free(), line.inFlight.size()]).toEqual([false, 2, 2]);
  await line.pass();
  expect(line.reads).toEqual(['wait', 'wait']);
});

it('a stop waits for a round trip that is under way, and its entries are left to the hand-over', async () => {
  const line = open();
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a', 'b');
  const trip = line.next();
  let isStopped = false;
  const stopped = line.fetcher.stop().then(() => {
    isStopped = true;
  });
  await breathe();
  expect(isStopped).toBe(false);
  await trip.answer({ taken: ['e', 'f'].map((id) => runOf(line.delivery(id))) });
  await stopped;
  expect([line.running(), line.inFlight.size(), line.begun.length]).toEqual([['c', 'd'], 2, 4]);
  await line.end('c', 'd');
  expect(line.next()).toMatchObject({ over: ['c', 'd'], take: 0 });
});

it('a suspect waits for a round trip that is under way, and nothing more is asked for meanwhile', async () => {
  const line = open();
  for (const ref of line.refs) line.roundTrips.expectMore(ref);
  await line.pass();
  await line.pass();
  const [one, other] = [line.next(), line.next()];
  expect([one.take, other.take]).toEqual([2, 2]);
  const suspect = line.delivery('s');
  await one.answer({ taken: [{ ...suspect, kind: 'suspect', token: '3' as never }, runOf(line.delivery('e'))] });
  await line.end('e');
  const over = line.next();
  expect([over.over, over.take]).toEqual([['e'], 0]);
  await over.answer();
  // Nothing runs, but what the other trip brings may start at any moment.
  expect([line.running(), line.asked]).toEqual([[], []]);
  await other.answer({ taken: [runOf(line.delivery('f'))] });
  expect([line.running(), line.asked]).toEqual([['f'], []]);
  await line.end('f');
  await line.ring();
  await line.next().answer();
  const alone = line.next();
  expect(alone).toMatchObject({ verb: 'start', given: ['s'] });
  await alone.answer();
  expect(line.running()).toEqual(['s']);
});

it('partitions with more are asked in rotation, and share the free slots', async () => {
  const line = open({ concurrency: 8, partitions: 3 });
  for (const ref of line.refs.slice(0, 2)) line.roundTrips.expectMore(ref);
  await line.pass();
  // The first look goes into all partitions; after it the two are asked.
  expect(line.reads).toEqual(['look']);
  const trips = [];
  for (let nth = 0; nth < 4; nth += 1) {
    await line.pass();
    trips.push(line.next());
  }
  expect(trips.map(({ partition }) => partition)).toEqual([0, 1, 0, 1]);
  expect(trips.map(({ take }) => take)).toEqual([4, 2, 1, 1]);
  expect(line.inFlight.free()).toBe(0);
});

it('while one partition has more and more, the others are looked into every 20 ms', async () => {
  const line = open({ partitions: 2 });
  await line.pass();
  await line.arrives(0, line.delivery('a'), line.delivery('b'));
  await line.next().answer();
  for (let nth = 0; nth < 3; nth += 1) {
    await line.pass();
    await line.next().answer({ taken: [runOf(line.delivery(`c${nth}`)), runOf(line.delivery(`d${nth}`))] });
    await line.end(`c${nth}`, `d${nth}`);
    await line.next().answer({ taken: [] });
    for (const busy of line.refs.slice(0, 1)) line.roundTrips.expectMore(busy);
  }
  expect(line.reads).toEqual(['wait']);
  line.advance(20);
  await line.arrives(1, line.delivery('quiet'));
  await line.pass();
  expect(line.reads).toEqual(['wait', 'look']);
  expect(line.next()).toMatchObject({ partition: 1, given: ['quiet'] });
});

it('a worker with one slot asks for one job at a time, after the last has ended', async () => {
  const line = open({ concurrency: 1 });
  await full(line, 'a');
  const passed = await line.pass();
  expect([passed.isOver(), line.asked]).toEqual([false, []]);
  await line.end('a');
  const trip = line.next();
  expect(trip.take + line.asked.reduce((sum, { take }) => sum + take, 0)).toBe(1);
  const bringing = [trip, ...line.asked.splice(0)];
  for (const one of bringing) await one.answer(one.take > 0 ? { taken: [runOf(line.delivery('b'))] } : {});
  expect([line.running(), line.most()]).toEqual([['b'], 1]);
});

it('slots that a round trip had reserved are not free before its entries are there', async () => {
  const line = open({ concurrency: 2 });
  await full(line, 'a', 'b');
  await line.end('a', 'b');
  await line.pass();
  const trips = [line.next(), line.next()];
  expect(trips.map(({ take }) => take)).toEqual([1, 1]);
  const passed = await line.pass();
  for (const one of trips) await one.answer({ taken: [runOf(line.delivery(`n${one.over.length}`))] });
  expect([passed.isOver(), line.running(), line.asked]).toEqual([false, ['n0', 'n2'], []]);
});

it('a fault of ours after the time-out of a job that was completed early leaves the late reply without an effect', async () => {
  const line = open({ once: true });
  await line.pass();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  await line.next().answer();
  await line.ring();
  const late = line.next();
  const [entry] = line.inFlight.all();
  if (!entry) throw new Error('it runs');
  line.inFlight.overtaken(entry);
  line.acknowledger.failed(entry, new Error('our own code threw'));
  await late.answer({ completed: ['already'] });
  expect([entry.state.phase, line.inFlight.size()]).toEqual(['overtaken', 1]);
  await line.end('a');
  expect(line.inFlight.size()).toBe(0);
});

it('delivered at most once, a job is completed before it runs, and its entry goes with the next round trip', async () => {
  const line = open({ once: true });
  await line.pass();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  expect(line.begun).toEqual([]);
  const first = line.next();
  expect(first).toMatchObject({ verb: 'complete', over: ['a'] });
  await first.answer();
  expect(line.begun).toEqual(['a']);
  await line.ring();
  const last = line.next();
  expect(last).toMatchObject({ verb: 'serve', over: ['a'] });
  await last.answer({ completed: ['already'] });
  expect(line.inFlight.size()).toBe(1);
  await line.end('a');
  expect(line.inFlight.size()).toBe(0);
});

it('without a done window a completion of a job without tags brings a bar alone', async () => {
  const line = open({ windowMs: 0 });
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a');
  expect(line.next()).toMatchObject({ over: ['a'], marks: ['|'] });
});

it('an entry that a round trip brings too late to be trusted is asked for again, and the answer decides', async () => {
  const line = open();
  await full(line, 'a', 'b', 'c', 'd');
  await line.end('a', 'b');
  const trip = line.next();
  const [e, f] = [line.delivery('e'), line.delivery('f')];
  line.advance(TRUSTED_MS);
  await trip.answer({ taken: [runOf(e), runOf(f)] });
  expect(line.begun).toEqual(['a', 'b', 'c', 'd']);
  const again = line.next();
  expect(again).toMatchObject({ given: ['e', 'f'], take: 0 });
  line.advance(TRUSTED_MS - 1);
  await again.answer({ taken: [runOf(e, 'again'), { ...f, kind: 'lost' }] });
  expect([line.begun.slice(4), line.inFlight.busy()]).toEqual([['e'], 3]);
  line.advance(LEASE_MS);
});

it('a pass of the leader completes what is over and brings what it promotes, into slots that no read may fill', async () => {
  const line = open();
  await line.pass();
  expect(line.relay()).toBeUndefined();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  await line.end('a');
  expect(line.counts).toEqual([4, 1]);
  const passed = line.relay();
  const asked = line.next();
  expect(asked).toMatchObject({ verb: 'relay', over: ['a'], take: 3 });
  expect(line.inFlight.free()).toBe(1);
  await asked.answer({ taken: ['b', 'c'].map((id) => runOf(line.delivery(id))) });
  expect(await passed).toMatchObject({ reply: { kind: 'promoted', count: 2 }, limit: 3 });
  expect([line.running(), line.inFlight.free(), line.roundTrips.hasMore()]).toEqual([['b', 'c'], 2, false]);
  void line.relay();
  expect(line.next().take).toBe(1);
});

it('a leader passes by itself where no slot is left, more waits, or nothing may start', async () => {
  const line = open();
  await line.pass();
  expect(line.relay()).toBeUndefined();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  void line.relay(2);
  await line.next().answer({ taken: ['b', 'c'].map((id) => runOf(line.delivery(id))) });
  expect([line.roundTrips.hasMore(), line.relay()]).toEqual([true, undefined]);
  await line.end('a');
  await line.next().answer();
  expect(line.roundTrips.hasMore()).toBe(false);
  line.inFlight.setOpen(false);
  expect(line.relay()).toBeUndefined();
  line.inFlight.setOpen(true);
  expect(line.relay(1)).toBeDefined();
  expect(line.relay()).toBeUndefined();
  await line.next().answer();
});

it('a pass without a reply is told to the leader, and what was over is completed by itself', async () => {
  const line = open();
  await line.pass();
  expect(line.relay()).toBeUndefined();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  await line.end('a');
  const passed = line.relay();
  await line.next().fail();
  await expect(passed).rejects.toThrow('closed');
  expect(line.next()).toMatchObject({ verb: 'complete', over: ['a'] });
  expect(line.inFlight.free()).toBe(4);
});

it('a partition that did not answer holds no slots until it does', async () => {
  const line = open({ partitions: 2 });
  const [away, other] = line.refs as [PartitionRef, PartitionRef];
  const ask = (ref: PartitionRef) => {
    line.roundTrips.expectMore(ref);
    return line.roundTrips.to(ref).then(
      (hasMore) => ({ hasMore }),
      ({ message }: Error) => ({ message }),
    );
  };
  const first = ask(away);
  expect(line.inFlight.free()).toBe(2);
  await line.next().fail();
  expect(await first).toEqual({ message: 'Connection is closed.' });
  const again = ask(away);
  const probe = line.next();
  expect([probe.take, line.inFlight.free()]).toEqual([0, 4]);
  void ask(other);
  expect([line.next().take, line.inFlight.free()]).toEqual([2, 2]);
  await probe.answer();
  expect(line.inFlight.free()).toBe(1);
  await line.next().answer({ taken: [runOf(line.delivery('a'))] });
  expect([await again, line.begun]).toEqual([{ hasMore: true }, ['a']]);
});

it('a pass of a leader that was deposed is told so, and what was over is completed', async () => {
  const line = open();
  await line.pass();
  expect(line.relay()).toBeUndefined();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  await line.end('a');
  const passed = line.relay(500, '');
  await line.next().answer();
  expect(await passed).toMatchObject({ reply: { kind: 'fenced' } });
  expect(line.heard.of('job.completed').map(({ id }) => id)).toEqual(['a']);
});

it('reads ask for all slots again when no leader has passed for long', async () => {
  const line = open();
  await line.pass();
  expect(line.relay()).toBeUndefined();
  await line.arrives(0, line.delivery('a'));
  await line.next().answer();
  line.advance(15_000);
  await line.pass();
  await line.arrives(0, line.delivery('b'));
  await line.next().answer();
  await line.pass();
  expect(line.next()).toMatchObject({ verb: 'serve', take: 2 });
});

it('a slot that a take-over had first is not read for: the reader waits again', async () => {
  const line = open({ concurrency: 1 });
  const [ref] = line.refs;
  if (!ref) throw new Error('there is one partition');
  const delivery = line.delivery('a');
  line.inFlight.setOpen(false);
  const taken = line.starter.takeOver(ref, [delivery]);
  const passed = await line.pass();
  line.inFlight.setOpen(true);
  await breathe();
  expect([passed.isOver(), line.reads, line.inFlight.busy()]).toEqual([true, [], 1]);
  await line.pass();
  expect(line.reads).toEqual([]);
  await line.next().answer({ taken: [{ ...delivery, kind: 'dropped' }] });
  await taken;
  expect([line.reads, line.counts]).toEqual([['wait'], [1]]);
});

it('a suspect whose start is answered too late is left to adoption', async () => {
  const line = open({ concurrency: 1 });
  const [ref] = line.refs;
  if (!ref) throw new Error('there is one partition');
  const delivery = line.delivery('a');
  const taken = line.starter.takeOver(ref, [delivery]);
  await breathe();
  await line.next().answer({ taken: [{ ...delivery, kind: 'suspect', token: '3' as never }] });
  await taken;
  expect(line.inFlight.isOpen()).toBe(false);
  line.advance(LEASE_MS);
  await line.next().answer();
  expect([line.begun, line.inFlight.size(), line.inFlight.isOpen()]).toEqual([[], 0, true]);
});

it('while twice as many jobs as there are slots wait for their acknowledgement, nothing more is read', async () => {
  const line = open({ concurrency: 3 });
  const unanswered = [];
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
    await line.pass();
    await line.arrives(0, line.delivery(id));
    await line.next().answer();
    await line.end(id);
    await line.ring();
    unanswered.push(line.next());
  }
  expect(unanswered.map(({ over }) => over.join())).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  // The read that is under way was sent before the last of them had ended.
  await line.pass();
  const reads = line.reads.length;
  await line.arrives(0, line.delivery('g'));
  await line.next().answer();
  await line.pass();
  expect([line.running(), line.reads.length]).toEqual([['g'], reads]);
  await unanswered[0]?.answer();
  expect(line.reads.length).toBe(reads + 1);
});

it('what our own code throws beside a job ends the process, and is not taken for a lost reply', async () => {
  const line = open();
  await full(line, 'a', 'b');
  await line.end('a');
  await line.ring();
  const bug = new Error('planted');
  vi.spyOn(line.inFlight, 'answered').mockImplementationOnce(() => {
    throw bug;
  });
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  const uncaught = new Promise((resolve) => process.once('uncaughtException', resolve));
  await line.next().answer();
  expect(await uncaught).toBe(bug);
  for (const listener of listeners) process.on('uncaughtException', listener);
  expect(line.asked).toEqual([]);
});
