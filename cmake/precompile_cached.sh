#!/bin/sh
# precompile_cached.sh CCACHE COMPILER ARGUMENT...: runs the compiler through ccache, after removing the precompiled header that is to be made. While
# an older one lies there, ccache takes that for what the header says, and gives what some other header became that was once compiled in its place:
# after a change of branches, or in a copied build folder.
case " $* " in
  *" c++-header "*)
    for word; do
      case "$word" in *.gch) rm -f -- "$word" ;; esac
    done ;;
esac
# Without this leave, and -fpch-preprocess, it keeps nothing that uses a precompiled header.
CCACHE_SLOPPINESS=pch_defines,time_macros exec "$@"
