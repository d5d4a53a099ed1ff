# Completion of forewarp's commands, options, GPUs and files. For bash: source it. For zsh:
#   autoload -U +X bashcompinit && bashcompinit && source completion/forewarp.bash
# It asks the program, so it knows what that version knows.
_forewarp() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p')
  elif [ "$before" = --gpu ] || { [ "$command" = describe ] && [ "$before" = gpu ]; }; then
    words=$("$program" describe gpu 2>/dev/null | awk 'NR > 2 && NF {print $1}')
  elif [ "$before" = --cache ]; then
    words='cold warm sequence'
  elif [ "$before" = --theme ]; then
    if [ "$command" = report ]; then words='auto light dark'; else words='light dark'; fi
  elif [ "$before" = --color ]; then
    words='auto always never'
  elif [ "$command" = describe ] && [ "$COMP_CWORD" -eq 2 ]; then
    words='gpu metrics opcodes'
  elif [ "$command" = plot ] && [ "$COMP_CWORD" -eq 2 ]; then
    words=$("$program" plot --help 2>/dev/null | tr '\n' ' ' | sed -n 's/.*KIND is \([^.]*\)\. .*/\1/p' | sed 's/([^)]*)//g; s/ or / /g; s/,//g')
  elif [ "$before" = --case ] && [ "$command" = advise ]; then
    words=$(sed -n 's/^   "id": "\(.*\)",$/\1/p' "${COMP_WORDS[2]}" 2>/dev/null | sort -u)
  elif [ "$before" = --case ]; then
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
      if [ "${COMP_WORDS[i]}" = --launch ]; then words=$(sed -n 's/^\([A-Za-z0-9_.+-]*\):.*/\1/p' "${COMP_WORDS[i+1]}" 2>/dev/null); fi
    done
  elif [[ $word == -* ]]; then
    words=$("$program" "$command" --help 2>/dev/null | grep -o -- '--[a-z][a-z-]*' | sort -u)
  fi
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -o filenames -F _forewarp forewarp
