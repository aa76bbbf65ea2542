# Stuck terminating victims: payments/settlement preempted pods of data/cache, whose
# finalizer example.com/flush nobody removes. It waits for them, nominated to their nodes.
complaint="payments/settlement: 0 of 2 replicas available for many minutes, though it has the highest priority"

fault() {
  priority business-critical 1000000 | apply
  workload Deployment data cache 3 'cpu: 12, memory: 24Gi' 'nodeSelector: {pool: ssd}' 'finalizers: [example.com/flush]' | apply
  settled
  workload Deployment payments settlement 2 'cpu: 8, memory: 8Gi' 'nodeSelector: {pool: ssd}, priorityClassName: business-critical' | apply
  until_true exactly 2 payments settlement Pending
  sleep 10
}
