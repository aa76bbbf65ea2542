# A cordoned zone: all nodes of zone c are cordoned. shop/checkout spreads over zones
# (maxSkew 1, DoNotSchedule), and zone c, which is empty now, still counts.
complaint="shop/checkout: 3 of 9 replicas unavailable"

fault() {
  workload Deployment shop checkout 9 'cpu: 500m, memory: 1Gi' \
    'topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: checkout}}}]' | apply
  settled
  local node
  for node in general-c1 general-c2 ssd-c1; do
    kubectl cordon $node >/dev/null
    kubectl delete pods -A --field-selector spec.nodeName=$node -l 'app notin (kube-proxy,node-exporter)' >/dev/null
  done
  until_true exactly 3 shop checkout Pending
}
