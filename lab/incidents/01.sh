# Addresses used up: pods of payments/gateway need an address each (an extended resource).
# data/crawler was scaled up and holds 33 of 36. CPU and memory are free.
complaint="payments/gateway: 3 of 6 replicas unavailable since it was scaled up"
address='vpc.amazonaws.com/pod-eni: 1'

nodes() {
  local zone
  for zone in a b c; do
    node general-${zone}1 $zone general 8 32Gi '' 'vpc.amazonaws.com/pod-eni: 6'
    node general-${zone}2 $zone general 8 32Gi '' 'vpc.amazonaws.com/pod-eni: 6'
    node ssd-${zone}1 $zone ssd 16 64Gi
  done
  node batch-a1 a batch 8 32Gi '{key: dedicated, value: batch, effect: NoSchedule}'
}

fault() {
  workload Deployment payments gateway 3 "cpu: 250m, memory: 512Mi, $address" | apply
  settled
  workload Deployment data crawler 33 "cpu: 50m, memory: 64Mi, $address" | apply
  settled
  kubectl scale -n payments deployment/gateway --replicas=6 >/dev/null
  until_true exactly 3 payments gateway Pending
}
