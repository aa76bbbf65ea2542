# Taint and cordon left by a failed drain: payments/gateway keeps to zone b. general-b1 is
# cordoned and tainted since a drain that a PodDisruptionBudget stopped; one of the two
# undone alone does not help. general-b2 is full.
complaint="payments/gateway: 2 of 4 replicas unavailable"

fault() {
  workload Deployment payments gateway 4 'cpu: 3, memory: 4Gi' \
    'nodeSelector: {pool: general, topology.kubernetes.io/zone: eu-west-1b}' | apply
  settled
  apply <<'END'
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: payments, name: gateway}
spec: {minAvailable: 2, selector: {matchLabels: {app: gateway}}}
END
  kubectl taint node general-b1 maintenance=kernel-6.12:NoSchedule >/dev/null
  kubectl cordon general-b1 >/dev/null
  kubectl delete pods -n payments -l app=gateway --field-selector spec.nodeName=general-b1 >/dev/null
  until_true exactly 2 payments gateway Pending
}
