# The world of the incidents: what play.sh and the scripts NN.sh share.
#
# play.sh sets $scheduler (berth or kube-scheduler), $bin (the programs), $dir (the
# lab's directory), $lab (its process) and KUBECONFIG. An incident NN.sh sets
# $complaint and defines fault. It may set $gates and $replicas, and define nodes and
# config anew.

gates=      # feature gates of the API server and the scheduler
replicas=1  # of the scheduler

# apply creates or replaces the objects of standard input.
apply() { kubectl apply -f - >/dev/null; }

# node prints a Node: NAME ZONE POOL CPU MEMORY [TAINTS] [RESOURCES], the last two in YAML's flow style.
node() {
  local room="cpu: $4, memory: $5, pods: 110, ephemeral-storage: 100Gi${7:+, $7}"
  cat <<END
---
apiVersion: v1
kind: Node
metadata:
  name: $1
  labels:
    kubernetes.io/hostname: $1
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    topology.kubernetes.io/region: eu-west-1
    topology.kubernetes.io/zone: eu-west-1$2
    pool: $3
spec: {taints: [${6:-}]}
status: {capacity: {$room}, allocatable: {$room}}
END
}

# workload prints a workload: KIND NAMESPACE NAME REPLICAS REQUESTS [POD-SPEC] [POD-METADATA],
# the last three in YAML's flow style. REPLICAS is empty for a DaemonSet.
workload() {
  cat <<END
---
apiVersion: apps/v1
kind: $1
metadata: {namespace: $2, name: $3}
spec:
  ${4:+replicas: $4}
  selector: {matchLabels: {app: $3}}
  template:
    metadata: {labels: {app: $3}${7:+, $7}}
    spec: {${6:+$6, }containers: [{name: main, image: 'registry.example.com/$3:2.4.1', resources: {requests: {$5}, limits: {$5}}}]}
END
}

# namespace prints a Namespace: NAME.
namespace() { printf -- '---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n' "$1"; }

# priority prints a PriorityClass: NAME VALUE.
priority() { printf -- '---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %d\n' "$1" "$2"; }

# nodes prints the nodes: three pools in three zones.
nodes() {
  local zone batch='{key: dedicated, value: batch, effect: NoSchedule}'
  for zone in a b c; do
    node general-${zone}1 $zone general 8 32Gi
    node general-${zone}2 $zone general 8 32Gi
    node ssd-${zone}1 $zone ssd 16 64Gi
  done
  node batch-a1 a batch 8 32Gi "$batch"
  node batch-b1 b batch 8 32Gi "$batch"
}

# background prints what runs well.
background() {
  local name
  for name in shop payments data monitoring; do namespace $name; done
  local everywhere='tolerations: [{operator: Exists}], priorityClassName: system-node-critical'
  workload DaemonSet kube-system kube-proxy '' 'cpu: 100m, memory: 64Mi' "$everywhere"
  workload DaemonSet monitoring node-exporter '' 'cpu: 50m, memory: 64Mi' "$everywhere"
  workload Deployment kube-system coredns 2 'cpu: 100m, memory: 128Mi' "$everywhere"
  workload Deployment monitoring prometheus 1 'cpu: 1, memory: 6Gi' 'nodeSelector: {pool: ssd}'
  workload Deployment shop web 6 'cpu: 500m, memory: 1Gi' 'nodeSelector: {pool: general}'
  workload Deployment shop catalog 3 'cpu: 500m, memory: 2Gi' 'nodeSelector: {pool: general}'
  workload Deployment payments ledger 3 'cpu: 500m, memory: 2Gi' 'nodeSelector: {pool: general}'
  workload Deployment data etl 2 'cpu: 1, memory: 4Gi' \
    'nodeSelector: {pool: batch}, tolerations: [{key: dedicated, value: batch}]'
}

# config prints the scheduler's configuration.
config() {
  cat <<END
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $dir/$identity.kubeconfig}
END
}

# start_scheduler starts replica NUMBER of the scheduler and returns at once.
start_scheduler() {
  local program=("$bin/berth-scheduler")
  [ "$scheduler" = berth ] || program=("$bin/berth-lab" run-component kube-scheduler)
  "${program[@]}" --config="$dir/scheduler.yaml" --feature-gates="$gates" --leader-elect --v=2 \
    --authentication-kubeconfig="$dir/$identity.kubeconfig" --authorization-kubeconfig="$dir/$identity.kubeconfig" \
    --bind-address=127.0.0.1 --secure-port="$(port "$1")" \
    --tls-cert-file="$dir/pki/kube-apiserver.crt" --tls-private-key-file="$dir/pki/kube-apiserver.key" \
    >>"$(log "$1")" 2>&1 &
  echo $! >"$dir/scheduler-$1.pid"
}

# log prints the path of the log of replica NUMBER.
log() { echo "$dir/logs/$identity-$1.log"; }

# port prints the port of replica NUMBER.
port() { echo $((first_port + $1)); }

# signal sends SIGNAL to replica NUMBER.
signal() { kill "-$1" "$(cat "$dir/scheduler-$2.pid")"; }

# leader prints who holds the scheduler's lease.
leader() { kubectl get lease -n kube-system kube-scheduler -o 'jsonpath={.spec.holderIdentity}' 2>/dev/null; }

# apiserver prints the process of kube-apiserver.
apiserver() { pgrep -P "$lab" -f 'run-component kube-apiserver'; }

# until_true polls a command, for two minutes at most.
until_true() {
  local end=$((SECONDS + 120))
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -gt $end ]; then
      echo "play.sh: gave up waiting for: $*" >&2
      return 1
    fi
    sleep 0.5
  done
}

# settled waits until all replicas of all Deployments run.
settled() { kubectl wait deployment -A --all --for=condition=Available --timeout=120s >/dev/null; }

# pods prints the pods in a phase: NAMESPACE APP PHASE.
pods() { kubectl get pods -n "$1" -l "app=$2" --field-selector "status.phase=$3" -o name; }

# exactly reports whether just NUMBER pods are in a phase: NUMBER NAMESPACE APP PHASE.
exactly() { [ "$(pods "$2" "$3" "$4" | wc -l)" -eq "$1" ]; }
