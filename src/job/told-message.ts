/**
 * What may be told of what a handler threw: the message and the stack go into the history of its job, into dead letters
 * and into the log, where a queue that redacts data shows none of it.
 */

import type { Told } from '../kernel/reason.ts';
import type { JobRecord } from './codec.ts';
import { readRecord } from './compensation.ts';
import { type Redaction, redactor } from './redaction.ts';

/** Whose values a message may quote. */
export interface Quoted {
  /** As the handler got it. */
  readonly record: JobRecord;
  readonly life: { readonly started: { readonly record: string } };
  readonly rules: { readonly redact?: Redaction | undefined };
}

/** A text without the values of redacted fields, as they were stored and as the handler got them. */
export function tellerOf({ record, life, rules: { redact } }: Quoted): Told {
  if (!redact) return (text) => text;
  let told: Told | undefined;
  return (text) => {
    told ??= redactor([record, ...storedIn(life.started.record)], redact);
    return told(text);
  };
}

function storedIn(text: string): readonly JobRecord[] {
  try {
    return [readRecord(text)];
  } catch {
    return [];
  }
}
