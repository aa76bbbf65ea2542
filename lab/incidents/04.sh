# Preemption storm: every ten seconds a Job data/reindex-N starts, of PriorityClass urgent,
# which was meant for alerts. Each pod evicts pods of shop/checkout, which come back.
complaint="shop/checkout: pods are replaced over and over for minutes, clients see errors"

fault() {
  priority urgent 100000 | apply
  workload Deployment shop checkout 12 'cpu: 2500m, memory: 4Gi' 'nodeSelector: {pool: general}' | apply
  settled
  local n
  for ((n = 1; ; n++)); do
    reindex $n
    sleep 10
  done &
  sleep 30
}

# reindex creates the Job NUMBER.
reindex() {
  apply <<END
apiVersion: batch/v1
kind: Job
metadata: {namespace: data, name: reindex-$1}
spec:
  completions: 3
  parallelism: 3
  ttlSecondsAfterFinished: 60
  template:
    metadata: {labels: {app: reindex}}
    spec:
      priorityClassName: urgent
      restartPolicy: Never
      nodeSelector: {pool: general}
      containers: [{name: main, image: 'registry.example.com/reindex:0.9', resources: {requests: {cpu: 5}}}]
END
}
