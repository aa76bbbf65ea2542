#!/usr/bin/env bash
# play.sh N berth|kube-scheduler plays incident N: it starts a lab, brings it into the
# state, says what the page says, and stays until it is interrupted. README.md holds the
# answers. BERTH_BIN names the folder of the programs (default: bin of the repository).
set -euo pipefail
set -m # each job is a process group, which ends as a whole

here=$(cd "$(dirname "$0")" && pwd)
bin=${BERTH_BIN:-$here/../../bin}
number=$(printf %02d "$((10#${1:-0}))")
scheduler=${2:-}
case $scheduler in
berth) identity=berth-scheduler ;;
kube-scheduler) identity=kube-scheduler ;;
*) echo "usage: $0 N berth|kube-scheduler" >&2; exit 2 ;;
esac
[ -f "$here/$number.sh" ] || { echo "$0: there is no incident $number" >&2; exit 2; }
bin=$(cd "$bin" && pwd)
dir=$(mktemp -d /tmp/incident-XXXXXX)
lab=
first_port=$((20000 + RANDOM % 10000))
export KUBECONFIG=$dir/admin.kubeconfig

# finish ends all that was started, the lab last, and removes its directory.
finish() {
  trap '' INT TERM HUP
  exec 2>/dev/null # bash names the jobs that it kills
  local job
  for job in $(jobs -p); do
    [ "$job" = "$lab" ] || kill -KILL -- "-$job" || true
  done
  if [ -n "$lab" ]; then
    kill -CONT $(pgrep -P "$lab") || true
    kill -TERM "$lab" || true
    wait "$lab" || true
  fi
  rm -rf "$dir"
}
trap finish EXIT
trap 'exit 0' INT TERM HUP

. "$here/world.sh"
. "$here/$number.sh"

echo "Starting the lab in $dir; this takes about half a minute."
"$bin/berth-lab" up --scheduler none --nodes 0 --dir "$dir" ${gates:+--feature-gates "$gates"} >"$dir/lab.log" 2>&1 &
lab=$!
until_true grep -q 'The cluster is up' "$dir/lab.log" || { cat "$dir/lab.log" >&2; exit 1; }
config >"$dir/scheduler.yaml"
nodes | kubectl create -f - >/dev/null
background | apply
for ((i = 1; i <= replicas; i++)); do
  start_scheduler $i
  until_true leader # so that the first one leads
done
settled
fault

echo
echo "THE PAGE   $complaint"
echo
echo "  export KUBECONFIG=$KUBECONFIG"
if [ "$scheduler" = berth ]; then
  echo "  export PATH=$bin:\$PATH"
fi
for ((i = 1; i <= replicas; i++)); do
  echo "  replica $i of the scheduler: https://127.0.0.1:$(port $i), log in $(log $i)"
done
echo "  its configuration: $dir/scheduler.yaml"
echo
if [ "$scheduler" = berth ]; then
  echo "You may use berth (why, status, top, events, what-if, fit, config: berth --help), kubectl and the log."
  echo "status, top and events find the scheduler of a cluster by its lease; here they need --daemon https://127.0.0.1:$(port 1)."
else
  echo "You may use kubectl and the log."
fi
echo "Find the cause: what is wrong, and what would you change? Ctrl-C ends the incident."
wait "$lab"
