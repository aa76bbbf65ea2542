#!/usr/bin/env bash
# build.sh ARGUMENTS: "go build -v ARGUMENTS" in the current folder, with a count of
# the packages that are built instead of their names, and of modules that are fetched.
# The first build of the lab compiles a Kubernetes control plane, which takes minutes.
set -o pipefail
GO=${GO:-go}

# The packages are the last arguments. To list them fetches the modules that they need.
packages=()
for argument; do
	case $argument in ./*) packages+=("$argument") ;; esac
done

# count replaces lines that name a module or a package by one line that counts them.
# Whatever else the command says, such as an error, stays.
count() {
	awk -v modules="$2" -v total="$1" -v live="$([ -t 2 ] && echo 1)" '
		function show(text, every) {
			if (live) printf "\r\033[K%s", text
			else if (n % every == 1) print text
			shown = 1
		}
		/^go: downloading / { n++; show("fetching modules: " n " of at most " modules ", " $3 " " $4, 10); fflush(); next }
		/^[^ :#]+$/         { n++; show("building: package " n " of at most " total, 100); fflush(); next }
		{ if (live && shown) printf "\r\033[K"; shown = 0; print; fflush() }
		END { if (live && shown) printf "\r\033[K" }' >&2
}

listed=$(mktemp)
trap 'rm -f "$listed"' EXIT
# go.sum has a line for the content of each module that may be fetched.
modules=$(grep -cv '/go.mod ' go.sum)
{ "$GO" list -deps "${packages[@]}" >"$listed"; } 2>&1 | count 0 "$modules" || exit
"$GO" build -v "$@" 2>&1 | count "$(wc -l <"$listed")" "$modules"
