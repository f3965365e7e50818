/**
 * What a producer in another language must work out alike, as questions with the answers of the golden vectors
 * (test/golden/wire-v1.json, described in docs/wire-protocol.md). One table: the run and the page docs/reference/client-rules.md follow.
 */
import { type Fields, fieldsOf, listOf } from './record.ts';

export interface Ask {
  /** What is asked, as a program reads it. */
  readonly ask: string;
  readonly given: Fields;
  readonly wanted: unknown;
}

interface Section {
  readonly doc: string;
  /** Fields of `given`. */
  readonly given: string;
  readonly answer: string;
  readonly of: (vectors: Fields) => readonly Omit<Ask, 'ask'>[];
}

const some = (one: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(names.flatMap((name) => (name in one ? [[name, one[name]]] : [])));

const RECORD = ['dueMs', 'name', 'data', 'options', 'header', 'headers', 'counts'];

export const producerAsks: Readonly<Record<string, Section>> = {
  keys: {
    doc: 'the keys of a partition, by their names in the vectors',
    given: '`namespace`, `queue`, `partition`, `names`',
    answer: 'an object: name → key',
    of: ({ keys }) =>
      listOf(keys).map((one) => ({
        given: { ...some(one, ['namespace', 'queue', 'partition']), names: Object.keys(fieldsOf(one.keys)) },
        wanted: one.keys,
      })),
  },
  control: {
    doc: 'the keys of a namespace',
    given: '`namespace`, `names`',
    answer: 'an object: name → key',
    of: ({ keys }) =>
      listOf(keys).map((one) => ({
        given: { namespace: one.namespace, names: Object.keys(fieldsOf(one.control)) },
        wanted: one.control,
      })),
  },
  allowed: {
    doc: 'whether a name, an id or another word is allowed',
    given: '`what` (the names of the section `names`), `text`',
    answer: '`true` or `false`',
    of: ({ names }) =>
      Object.entries(fieldsOf(names)).flatMap(([what, lists]) =>
        [true, false].flatMap((wanted) => {
          const texts = fieldsOf(lists)[wanted ? 'valid' : 'invalid'];
          const all: readonly unknown[] = Array.isArray(texts) ? texts : [];
          return all.map((text) => ({ given: { what, text }, wanted }));
        }),
      ),
  },
  member: {
    doc: 'the member of a job',
    given: '`id`, `bare`',
    answer: 'a string',
    of: ({ members }) => listOf(members).map((one) => ({ given: some(one, ['id', 'bare']), wanted: one.member })),
  },
  group: {
    doc: 'the group of a member',
    given: '`member`',
    answer: 'a string, or `null`',
    of: ({ groups }) => listOf(groups).map((one) => ({ given: some(one, ['member']), wanted: one.group })),
  },
  partition: {
    doc: 'the partition of an id',
    given: '`id`, `partitions`',
    answer: 'a number',
    of: ({ partitions }) =>
      listOf(partitions).flatMap((one) =>
        Object.entries(fieldsOf(one.of)).map(([count, wanted]) => ({
          given: { id: one.id, partitions: Number(count) },
          wanted,
        })),
      ),
  },
  record: {
    doc: 'the record of a job',
    given: '`dueMs`, and `name`, `data`, `options`, `header`, `headers`, `counts` where the job has them',
    answer: 'a string',
    of: ({ records }) => listOf(records).map((one) => ({ given: some(one, RECORD), wanted: one.record })),
  },
  layout: {
    doc: 'the layout that a value of the registry says',
    given: '`value`',
    answer: '`{"partitions", "generation"}`, both `null` where it says none',
    of: ({ registry }) =>
      listOf(registry).map((one) => ({
        given: some(one, ['value']),
        wanted: { partitions: one.partitions, generation: one.generation },
      })),
  },
  nudge: {
    doc: 'what is published after a job was put',
    given: '`wake` (the field of `K:meta`, or `null`), `dueMs`',
    answer: 'a string, or `null` for nothing',
    of: ({ nudges }) => listOf(nudges).map((one) => ({ given: some(one, ['wake', 'dueMs']), wanted: one.publish })),
  },
};
