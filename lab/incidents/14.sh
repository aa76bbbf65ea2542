# A DaemonSet blocked: the new DaemonSet monitoring/log-agent asks for 1500m CPU and has no
# priority. On general-a1 and general-b2, which media/transcode fills, its pods wait.
complaint="monitoring/log-agent: 2 nodes send no logs since the rollout of the new agent"

fault() {
  namespace media | apply
  workload Deployment media transcode 2 'cpu: 6500m, memory: 12Gi' 'affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [general-a1, general-b2]}]}]}}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: transcode}}}]}}' | apply
  settled
  workload DaemonSet monitoring log-agent '' 'cpu: 1500m, memory: 512Mi' 'tolerations: [{operator: Exists}]' | apply
  until_true exactly 2 monitoring log-agent Pending
}
