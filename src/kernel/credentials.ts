/**
 * Hides credentials in whatever may be shown: a URL, or a text with URLs in it. The last @ of a word counts, because a
 * password may contain one, and a slash.
 */
export function withoutCredentials(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s"']*@/gi, '$1***@')
    .replace(/([?&](?:password|username)=)[^&\s"']*/gi, '$1***');
}
