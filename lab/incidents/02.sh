# Leader stopped: both replicas of the scheduler hang, first the leader, then the one that
# took over (SIGSTOP, as on a node that swaps). The processes are there; the lease ran out.
complaint="nothing starts any more, in any namespace; shop/checkout: 0 of 4 replicas available after its deployment"
replicas=2

fault() {
  local first
  first=$(leader)
  signal STOP 1
  until_true led_by_another "$first"
  signal STOP 2
  workload Deployment shop checkout 4 'cpu: 500m, memory: 1Gi' 'nodeSelector: {pool: general}' | apply
  kubectl scale -n payments deployment/ledger --replicas=5 >/dev/null
  until_true exactly 4 shop checkout Pending
  sleep 20 # until the lease has run out
}

led_by_another() { [ "$(leader)" != "$1" ] && [ -n "$(leader)" ]; }
