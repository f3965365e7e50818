/**
 * Makes failed-payments.csv, the same bytes each time: `node examples/payment-reminders/generate.mjs`. The people are
 * invented, the addresses use names reserved for documentation. Some rows are broken on purpose, and some come twice, as
 * in every export that was ever sent by mail.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sequence } from './chance.mjs';

const PAYMENTS = 324;
const FILE = fileURLToPath(new URL('failed-payments.csv', import.meta.url));
const HEADER = 'payment,failed_at,amount,currency,name,email,locale,zone,account,new_customer';
const FIRST_MS = Date.UTC(2026, 2, 2, 6, 0, 0);
const SPREAD_MS = 8 * 3_600_000;

/** @typedef {{ locale: string, currency: string, zone: string, offset: string, names: readonly string[] }} Country */

/** The offsets are those of 2 March 2026. */
const COUNTRIES = /** @type {readonly Country[]} */ ([
  { locale: 'de-DE', currency: 'EUR', zone: 'Europe/Berlin', offset: '+01:00', names: ['Jürgen Weiß', 'Anke Groß'] },
  { locale: 'de-CH', currency: 'CHF', zone: 'Europe/Zurich', offset: '+01:00', names: ['Urs Zürcher', 'Reto Bächli'] },
  { locale: 'en-GB', currency: 'GBP', zone: 'Europe/London', offset: '+00:00', names: ['Nia Hughes', 'Tom O’Brien'] },
  { locale: 'en-US', currency: 'USD', zone: 'America/New_York', offset: '-05:00', names: ['Ana Cole', 'Sam Reed'] },
  { locale: 'en-US', currency: 'USD', zone: 'America/Los_Angeles', offset: '-08:00', names: ['Lee Ortiz', 'Joy Kim'] },
  { locale: 'en-IN', currency: 'INR', zone: 'Asia/Kolkata', offset: '+05:30', names: ['Asha Rao', 'Vikram Nair'] },
  { locale: 'en-AU', currency: 'AUD', zone: 'Australia/Lord_Howe', offset: '+11:00', names: ['Ruby Hale'] },
  { locale: 'en-NZ', currency: 'NZD', zone: 'Pacific/Chatham', offset: '+13:45', names: ['Tama Preece'] },
  { locale: 'fr-FR', currency: 'EUR', zone: 'Europe/Paris', offset: '+01:00', names: ['Zoé Lefèvre', 'Noël Garçon'] },
  { locale: 'fr-CA', currency: 'CAD', zone: 'America/Toronto', offset: '-05:00', names: ['Élise Côté'] },
  { locale: 'es-ES', currency: 'EUR', zone: 'Europe/Madrid', offset: '+01:00', names: ['Begoña Peña', 'Íñigo Ruiz'] },
  { locale: 'es-MX', currency: 'MXN', zone: 'America/Mexico_City', offset: '-06:00', names: ['José Muñoz'] },
  { locale: 'it-IT', currency: 'EUR', zone: 'Europe/Rome', offset: '+01:00', names: ['Nicolò Ferrà', 'Giada Conti'] },
  { locale: 'pt-BR', currency: 'BRL', zone: 'America/Sao_Paulo', offset: '-03:00', names: ['João Conceição'] },
  { locale: 'ja-JP', currency: 'JPY', zone: 'Asia/Tokyo', offset: '+09:00', names: ['佐藤 花子', '鈴木 一郎'] },
  { locale: 'en-GB', currency: 'KWD', zone: 'Asia/Kuwait', offset: '+03:00', names: ['Mariam Al-Sabah'] },
]);

/** What is done to a row, and why a reader has to refuse it. */
const DAMAGE = /** @type {readonly ((cells: string[]) => string)[]} */ ([
  (cells) => row(cells.with(2, '12,5O')),
  (cells) => row(cells.with(5, '')),
  (cells) => row(cells.with(7, 'Mars/Olympus_Mons')),
  (cells) => row(cells).replace(cells[4] ?? '', `"${cells[4]}" Esq.`),
  (cells) => row(cells.with(1, '2026-02-30T10:15:00+01:00')),
  (cells) => row(cells.with(2, '-40.00')),
  (cells) => row(cells.with(3, 'XQZ')),
  (cells) => row(cells.with(5, 'nobody at example.com')),
  (cells) => row(cells).replace(cells[4] ?? '', `"${cells[4]}`),
  (cells) => row(cells.with(1, '2026-03-02T25:61:00Z')),
  (cells) => row(cells.slice(0, 6)),
  (cells) => row(cells.with(2, '1e9')),
  (cells) => row(cells.with(1, '2026-03-02T09:00:00')),
  (cells) => row(cells.with(0, '')),
  (cells) => row(cells.with(2, '4800.50').with(3, 'JPY')),
]);

/** The whole file. */
export function makeCsv() {
  const random = sequence(20_260_302);
  const good = Array.from({ length: PAYMENTS }, (_, index) => payment(index, random));
  const lines = good.map(row);
  DAMAGE.forEach((damage, index) => {
    const cells = payment(PAYMENTS + index, random);
    lines.splice(7 + index * 21, 0, damage([...cells]));
  });
  for (let index = 0; index < 12; index += 1) {
    const cells = [...(good[20 + index * 24] ?? [])];
    // The same failure exported twice; every third time somebody changed the amount in between.
    const again = index % 3 === 2 && cells[3] !== 'JPY' ? cells.with(2, `1${cells[2]}`) : cells;
    lines.splice(60 + index * 25, 0, row(again));
  }
  return `${[HEADER, ...lines].join('\n')}\n`;
}

/**
 * @param {number} index
 * @param {ReturnType<typeof sequence>} random
 */
function payment(index, random) {
  const country = random.pick(COUNTRIES);
  const id = `P-${10_001 + index}`;
  const failed = FIRST_MS + Math.floor((index / (PAYMENTS + DAMAGE.length)) * SPREAD_MS) + random.whole(60_000);
  const domain = random.next() < 0.02 ? 'gone.example' : random.pick(['example.com', 'example.net', 'example.org']);
  return [
    id,
    local(failed, country.offset),
    amount(country.currency, random),
    country.currency,
    random.pick(country.names),
    `customer-${id.slice(2)}@${domain}`,
    country.locale,
    country.zone,
    `ACC-${String(1 + random.whole(12)).padStart(2, '0')}`,
    random.next() < 0.12 ? 'yes' : 'no',
  ];
}

/**
 * @param {number} ms
 * @param {string} offset such as +05:30
 */
function local(ms, offset) {
  const [hours = 0, minutes = 0] = offset.slice(1).split(':').map(Number);
  const shift = (hours * 60 + minutes) * 60_000 * (offset.startsWith('-') ? -1 : 1);
  return `${new Date(ms + shift).toISOString().slice(0, 19)}${offset}`;
}

/**
 * @param {string} currency
 * @param {ReturnType<typeof sequence>} random
 */
function amount(currency, random) {
  if (currency === 'JPY') return String(900 + random.whole(50_000));
  const units = 5 + random.whole(1200);
  return currency === 'KWD' ? `${units}.${String(random.whole(1000)).padStart(3, '0')}` : `${units}.90`;
}

/** @param {readonly string[]} cells */
function row(cells) {
  return cells.map((cell) => (/[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(FILE, makeCsv());
