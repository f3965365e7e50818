/** How much a queue may hold and does, in words. */
import type { QuotaUse } from '../../job/quota.ts';
import { line } from './text.ts';

/** Of the limit that is nearer: how much of it is used. */
export function fullText({ pending, pendingMax, bytes, bytesMax }: QuotaUse): string {
  return `${Math.max(percent(pending, pendingMax), percent(bytes, bytesMax))} %`;
}

/** Both limits, each with what is used of it. */
export function quotaText({ pending, pendingMax, bytes, bytesMax }: QuotaUse): string {
  const jobs = pendingMax === 0 ? [] : [line`${pending} of ${pendingMax} jobs (${percent(pending, pendingMax)} %)`];
  const size = bytesMax === 0 ? [] : [line`${bytes} of ${bytesMax} bytes (${percent(bytes, bytesMax)} %)`];
  return [...jobs, ...size].join(', ');
}

/** 0 without a limit. 100 only when it is reached. */
const percent = (used: number, most: number): number => (most === 0 ? 0 : Math.floor((used / most) * 100));
