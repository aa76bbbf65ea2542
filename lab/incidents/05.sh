# Bindings denied by policy: a ValidatingAdmissionPolicy on pods/binding denies nodes of
# the pool ssd to pods of shop. shop/checkout may run nowhere else.
complaint="shop/checkout: 2 of 4 replicas unavailable since the last scale-up"

fault() {
  workload Deployment shop checkout 2 'cpu: 500m, memory: 1Gi' 'nodeSelector: {pool: ssd}' | apply
  settled
  apply <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: pci-audit-scope}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods/binding]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
  validations:
  - expression: "!object.target.name.startsWith('ssd-')"
    message: only workloads in the audit's scope may use the pool ssd
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: pci-audit-scope}
spec: {policyName: pci-audit-scope, validationActions: [Deny]}
END
  sleep 3 # until the API server has compiled the policy
  kubectl scale -n shop deployment/checkout --replicas=4 >/dev/null
  until_true exactly 2 shop checkout Pending
}
