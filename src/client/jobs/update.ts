/**
 * `ifExists: 'update'`: a call of `schedule` whose id has a live job edits that job.
 *
 *   schedule, mode update ──▶ ok, already <how it ended>                              the job is made, or stays over
 *             ▲          └──▶ exists ──▶ edit ──▶ edited, already, running, over      compare and set, like every edit
 *             └──────────────────── unknown: its end is forgotten since ─┘
 *
 * The batch (`calls/batch.ts`) has the circle, because the call keeps its place in line until it is through. What the call names
 * stands in its plan, and the values in the record that it would have made: so a row of an outbox can say the same.
 */
import { decodeRecord } from '../../job/codec.ts';
import { Sealed } from '../../job/content.ts';
import { editFields } from '../../job/fields.ts';
import { queueOf } from '../../job/queue.ts';
import { markOf } from '../../job/record-header.ts';
import type { UpdateJob } from '../calls/batch.ts';
import type { Plan } from '../calls/plan.ts';
import { type ActParts, onIds } from './act.ts';
import { type EditTarget, editing } from './edit.ts';

/** The data of a plan are encoded already, so the queue that edits has neither a schema nor a codec. */
export const updating =
  (finding: ActParts): UpdateJob =>
  async (queue, plan, { isDoubtful }) => {
    const items = [{ ...targetOf(plan), ...(isDoubtful && { madeBy: markOf(plan.record) }) }];
    const [edited] = await onIds(finding, { queue, items }, editing(finding, queueOf(queue.name)));
    if (edited === undefined) throw new Error('an update of one job was answered with none');
    return edited;
  };

function targetOf({ id, record, dueMs, names = [] }: Plan): EditTarget {
  const { name, data, codec, ...stored } = decodeRecord(record);
  const isNamed = (one: string) => names.includes(one);
  const fields = editFields.filter((field) => isNamed(field.name));
  return {
    id,
    change: {
      ...(isNamed('name') && { name }),
      hasData: isNamed('data'),
      data: codec === undefined ? data : new Sealed(String(data), codec),
      options: Object.fromEntries(fields.map((field) => [field.name, givenOf(field, stored)])),
    },
    ...(isNamed('at') && { dueMs }),
  };
}

/** As a caller gives it; what is left out of a record because it is the default, is taken back. */
function givenOf(
  { option, stored: name }: (typeof editFields)[number],
  stored: Readonly<Record<string, unknown>>,
): unknown {
  const value = stored[name] ?? null;
  return option.kind === 'instant' && typeof value === 'number' ? new Date(value) : value;
}
