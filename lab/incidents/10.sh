# A gang half placed: the PodGroup ml/train has a minCount of 4 in place of 8, so that it
# was admitted with 5 workers. The other three GPUs are held by ml/notebooks.
complaint="ml/train stands still: 5 of 8 workers run and wait for the others; they were to start together or not at all"
# Berth does not start with this gate: pod groups of Kubernetes 1.37 are not implemented yet.
gates=GenericWorkload=true

nodes() {
  local zone
  for zone in a b c; do
    node general-${zone}1 $zone general 8 32Gi
    node general-${zone}2 $zone general 8 32Gi
  done
  node ssd-a1 a ssd 16 64Gi
  node batch-a1 a batch 8 32Gi '{key: dedicated, value: batch, effect: NoSchedule}'
  node gpu-a1 a gpu 32 128Gi '{key: nvidia.com/gpu, effect: NoSchedule}' 'nvidia.com/gpu: 4'
  node gpu-a2 a gpu 32 128Gi '{key: nvidia.com/gpu, effect: NoSchedule}' 'nvidia.com/gpu: 4'
}

fault() {
  local gpu='tolerations: [{key: nvidia.com/gpu, operator: Exists}]'
  namespace ml | apply
  workload Deployment ml notebooks 3 'cpu: 1, memory: 4Gi, nvidia.com/gpu: 1' "$gpu" | apply
  settled
  apply <<'END'
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {namespace: ml, name: train}
spec: {schedulingPolicy: {gang: {minCount: 4}}}
END
  workload ReplicaSet ml train 8 'cpu: 4, memory: 16Gi, nvidia.com/gpu: 1' "$gpu, schedulingGroup: {podGroupName: train}" | apply
  until_true exactly 5 ml train Running
  until_true exactly 3 ml train Pending
}
