# Mixed reasons: shop/search keeps to the pool ssd, one replica a node. Its last rollout
# raised its memory from 4Gi to 40Gi. data/cache leaves 32Gi on ssd-a1 and ssd-b1. The
# other nodes are out by design (selector, taint, anti-affinity).
complaint="shop/search: 2 of 3 replicas unavailable since the last rollout"

fault() {
  workload Deployment data cache 2 'cpu: 2, memory: 32Gi' 'affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [ssd-a1, ssd-b1]}]}]}}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}]}}' | apply
  search 4Gi
  settled
  search 40Gi
  until_true exactly 2 shop search Pending
  until_true exactly 1 shop search Running
}

# search rolls shop/search out with so much MEMORY, all replicas at once.
search() {
  workload Deployment shop search 3 "cpu: 1, memory: $1" 'nodeSelector: {pool: ssd}, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: search}}}]}}' |
    cat - <(echo '  strategy: {type: Recreate}') | apply
}
