# API server frozen and slow: kube-apiserver stands still for a second, again and again (SIGSTOP), and
# answers for 50 ms in between.
complaint="shop/checkout: its rollouts take ten times as long as usual, pods start late, in other namespaces too"

fault() {
  workload Deployment shop checkout 8 'cpu: 500m, memory: 1Gi' | apply
  settled
  local server
  server=$(apiserver)
  while true; do
    kill -STOP "$server"
    sleep 1
    kill -CONT "$server"
    sleep 0.05
  done &
  while true; do
    kubectl rollout restart -n shop deployment/checkout
    sleep 30
  done >/dev/null 2>&1 &
  sleep 45
}
