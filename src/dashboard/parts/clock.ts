/** Times of the clock of whoever looks, as short as a chart or a list has room for. */
import { language } from '../words/words.ts';

const TIME = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const WEEKDAY = new Intl.DateTimeFormat(language, { weekday: 'short' });

/** `09:00` */
export const timeText = (ms: number): string => TIME.format(ms);

/** `Fri 09:00` */
export const weekTimeText = (ms: number): string => `${WEEKDAY.format(ms)} ${TIME.format(ms)}`;
