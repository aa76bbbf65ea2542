# Preemption storm: the Job data/reindex has priority 100000 (its class was meant for
# alerts) and a thousand short pods. Each evicts pods of shop/checkout, which come back.
complaint="shop/checkout: pods are replaced over and over for minutes, clients see errors"

fault() {
  priority urgent 100000 | apply
  workload Deployment shop checkout 12 'cpu: 2500m, memory: 4Gi' 'nodeSelector: {pool: general}' | apply
  settled
  apply <<'END'
apiVersion: batch/v1
kind: Job
metadata: {namespace: data, name: reindex}
spec:
  completions: 100000
  parallelism: 3
  backoffLimit: 1000
  template:
    metadata: {labels: {app: reindex}}
    spec:
      priorityClassName: urgent
      restartPolicy: Never
      nodeSelector: {pool: general}
      containers: [{name: main, image: 'registry.example.com/reindex:0.9', resources: {requests: {cpu: 5}}}]
END
  sleep 20
}
