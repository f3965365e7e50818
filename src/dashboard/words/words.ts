/** Which language the pages speak. The choice stays in this browser; a page that is open is loaded again for another one. */
import { en, type Words } from './en.ts';

/** Its tag → how it calls itself, and its words. Those that nobody chose are not loaded. */
export const LANGUAGES = {
  en: { name: 'English', load: async () => en },
  de: { name: 'Deutsch', load: async () => (await import('./de.ts')).de },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly load: () => Promise<Words> }>>;

export type Language = keyof typeof LANGUAGES;

export const KEY = 'duestream.language';

export const isLanguage = (text: string | null): text is Language => text !== null && Object.hasOwn(LANGUAGES, text);

/** What a browser has, and a test of words has not. */
interface Around {
  readonly localStorage?: { readonly getItem: (key: string) => string | null };
}

/** English where nobody chose: what the daemon says is English too. */
function chosenLanguage(): Language {
  try {
    const kept = (globalThis as Around).localStorage?.getItem(KEY) ?? null;
    return isLanguage(kept) ? kept : 'en';
  } catch {
    // Storage may be forbidden.
    return 'en';
  }
}

/** A tag of BCP 47, also for numbers and dates. */
export const language: Language = chosenLanguage();

/** @example words.states.ready // ready */
export const words: Words = language === 'en' ? en : await LANGUAGES[language].load();
