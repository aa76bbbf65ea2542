# Scheduler restarted: something kills the scheduler every 22 s, and its supervisor starts
# it again. The dead one's lease has to run out first, so that it works 4 s of 22.
complaint="new pods wait for up to half a minute before they start, in all namespaces; there is room"

fault() {
  workload Deployment shop checkout 4 'cpu: 500m, memory: 1Gi' | apply
  settled
  exec 2>/dev/null # bash names the jobs that are killed
  while true; do
    signal KILL 1
    sleep 2
    start_scheduler 1
    sleep 10
    kubectl rollout restart -n shop deployment/checkout
    sleep 10
  done >/dev/null 2>&1 &
  sleep 50
}
