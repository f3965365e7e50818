/**
 * What the customer reads: in the language of the locale, the amount as that country writes it, and the time of the
 * failure as the customer's own clock showed it. Pure; a language we do not speak gets English.
 */
import { DateTime } from 'luxon';

/** @typedef {'1h' | '1d' | '3d'} Step */
/** @typedef {'reminder' | 'welcome'} Kind */
/**
 * @typedef {object} Words `{name}`, `{amount}`, `{time}` and `{payment}` are filled in
 * @property {Readonly<Record<Step, string>>} subjects
 * @property {string} body
 * @property {readonly [subject: string, body: string]} welcome
 */
/** @typedef {Pick<import('./payments.mjs').Payment, 'id' | 'failedAtMs' | 'amount' | 'currency' | 'name' | 'locale' | 'zone'>} Facts */

/** @type {Readonly<Record<string, Words>>} */
const WORDS = {
  en: {
    subjects: {
      '1h': 'Your payment of {amount} did not go through',
      '1d': 'A reminder: {amount} is still open',
      '3d': 'Last reminder: {amount}',
    },
    body: 'Hello {name},\n\nyour payment {payment} of {amount} failed on {time}.\nPlease try again.',
    welcome: ['Welcome, {name}', 'Hello {name},\n\nit is good to have you here.'],
  },
  de: {
    subjects: {
      '1h': 'Ihre Zahlung über {amount} ist fehlgeschlagen',
      '1d': 'Zur Erinnerung: {amount} sind noch offen',
      '3d': 'Letzte Erinnerung: {amount}',
    },
    body: 'Guten Tag {name},\n\nIhre Zahlung {payment} über {amount} ist am {time} fehlgeschlagen.\nBitte versuchen Sie es erneut.',
    welcome: ['Willkommen, {name}', 'Guten Tag {name},\n\nschön, dass Sie da sind.'],
  },
  fr: {
    subjects: {
      '1h': 'Votre paiement de {amount} a échoué',
      '1d': 'Rappel : {amount} restent à régler',
      '3d': 'Dernier rappel : {amount}',
    },
    body: 'Bonjour {name},\n\nvotre paiement {payment} de {amount} a échoué le {time}.\nMerci de réessayer.',
    welcome: ['Bienvenue, {name}', 'Bonjour {name},\n\nnous sommes heureux de vous accueillir.'],
  },
  es: {
    subjects: {
      '1h': 'Su pago de {amount} no se ha realizado',
      '1d': 'Recordatorio: quedan pendientes {amount}',
      '3d': 'Último recordatorio: {amount}',
    },
    body: 'Hola, {name}:\n\nsu pago {payment} de {amount} falló el {time}.\nPor favor, inténtelo de nuevo.',
    welcome: ['Le damos la bienvenida, {name}', 'Hola, {name}:\n\nnos alegra tenerle aquí.'],
  },
  it: {
    subjects: {
      '1h': 'Il pagamento di {amount} non è riuscito',
      '1d': 'Promemoria: {amount} ancora da pagare',
      '3d': 'Ultimo promemoria: {amount}',
    },
    body: 'Gentile {name},\n\nil pagamento {payment} di {amount} non è riuscito il {time}.\nLa preghiamo di riprovare.',
    welcome: ['Benvenuti, {name}', 'Gentile {name},\n\nsiamo felici di averla con noi.'],
  },
  pt: {
    subjects: {
      '1h': 'Seu pagamento de {amount} não foi concluído',
      '1d': 'Lembrete: {amount} ainda em aberto',
      '3d': 'Último lembrete: {amount}',
    },
    body: 'Olá, {name},\n\nseu pagamento {payment} de {amount} falhou em {time}.\nPor favor, tente novamente.',
    welcome: ['Boas-vindas, {name}', 'Olá, {name},\n\né bom ter você aqui.'],
  },
  ja: {
    subjects: {
      '1h': '{amount} のお支払いが完了しませんでした',
      '1d': 'お知らせ:{amount} が未払いです',
      '3d': '最後のお知らせ:{amount}',
    },
    body: '{name} 様\n\nお支払い {payment}({amount})は {time} に失敗しました。\nもう一度お試しください。',
    welcome: ['ようこそ、{name} 様', '{name} 様\n\nご登録ありがとうございます。'],
  },
};

/**
 * @param {Facts} facts
 * @param {Step} step
 */
export function reminderMail(facts, step) {
  const words = wordsFor(facts.locale);
  return { subject: fill(words.subjects[step], facts), text: fill(words.body, facts) };
}

/** @param {Facts} facts */
export function welcomeMail(facts) {
  const [subject, body] = wordsFor(facts.locale).welcome;
  return { subject: fill(subject, facts), text: fill(body, facts) };
}

/** @param {{ account: string, number: number }} statement */
export function statementMail({ account, number }) {
  return {
    subject: `Statement ${number} of ${account}`,
    text: `The books of ${account} were closed for run ${number}.`,
  };
}

/** @param {Facts} facts */
export function amountOf({ locale, amount, currency }) {
  // A numeric string keeps every digit; the type knows it only as a pattern.
  const decimal = /** @type {`${number}`} */ (amount);
  return new Intl.NumberFormat(locale, { style: 'currency', currency }).format(decimal);
}

/** @param {Facts} facts */
export function timeOf({ locale, zone, failedAtMs }) {
  const time = DateTime.fromMillis(failedAtMs, { zone }).setLocale(locale);
  return time.toLocaleString({ ...DateTime.DATETIME_MED, timeZoneName: 'short' });
}

/** @param {string} locale */
function wordsFor(locale) {
  return WORDS[locale.split('-')[0] ?? ''] ?? /** @type {Words} */ (WORDS.en);
}

/**
 * @param {string} text
 * @param {Facts} facts
 */
function fill(text, facts) {
  return text.replace(/\{(\w+)\}/g, (_, key) => {
    if (key === 'amount') return amountOf(facts);
    if (key === 'time') return timeOf(facts);
    return key === 'payment' ? facts.id : facts.name;
  });
}
