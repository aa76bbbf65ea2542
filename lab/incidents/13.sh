# API server frozen and slow: kube-apiserver stands still 4 s of 5 (SIGSTOP).
complaint="shop/checkout: its rollouts take minutes, pods start late, in other namespaces too"

fault() {
  workload Deployment shop checkout 4 'cpu: 500m, memory: 1Gi' | apply
  settled
  local server
  server=$(apiserver)
  while true; do
    kill -STOP "$server"
    sleep 4
    kill -CONT "$server"
    sleep 1
  done &
  while true; do
    kubectl rollout restart -n shop deployment/checkout
    sleep 30
  done >/dev/null 2>&1 &
  sleep 60
}
