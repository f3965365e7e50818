/**
 * The few lines that each shell needs: they hand the words to `duestream completion <shell> -- …` and show what it says,
 * one candidate per line, its description behind a tab. `:files` asks for the shell's own files.
 */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** The line that says "files". */
export const FILES_LINE = ':files';

export const scripts: Readonly<Record<Shell, string>> = {
  bash: `_duestream() {
  local line words
  COMPREPLY=()
  words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  while IFS= read -r line; do
    if [[ $line == ${FILES_LINE} ]]; then
      compopt -o default
      return
    fi
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(duestream completion bash -- "\${words[@]}" 2>/dev/null)
}
complete -F _duestream duestream`,

  zsh: `#compdef duestream
_duestream() {
  local line
  local -a found
  for line in "\${(@f)$(duestream completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ${FILES_LINE} ]]; then
      _files
      return
    fi
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe duestream found
}
if [[ $funcstack[1] == _duestream ]]; then
  _duestream "$@"
else
  compdef _duestream duestream
fi`,

  fish: `function __duestream
  set -l words (commandline -opc) (commandline -ct)
  set -l found (duestream completion fish -- $words[2..-1] 2>/dev/null)
  if test "$found[1]" = '${FILES_LINE}'
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $found
  end
end
complete -c duestream -f -a '(__duestream)'`,
};
