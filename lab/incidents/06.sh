# Quota used up: shop/load-test, which somebody forgot, holds 6 of the namespace's 14 CPUs.
# No pod is pending: the ReplicaSet may not make any.
complaint="shop/checkout: 2 of 4 replicas unavailable"

fault() {
  apply <<'END'
apiVersion: v1
kind: ResourceQuota
metadata: {namespace: shop, name: compute}
spec: {hard: {requests.cpu: 14, requests.memory: 64Gi, pods: 60}}
END
  workload Deployment shop load-test 3 'cpu: 2, memory: 1Gi' | apply
  settled
  workload Deployment shop checkout 4 'cpu: 1500m, memory: 1Gi' | apply
  until_true exactly 2 shop checkout Running
}
