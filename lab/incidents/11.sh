# A typo in the configuration: its second profile is called batch-schedluer. Pods of
# data/report ask for batch-scheduler, which nobody is.
complaint="data/report: 0 of 3 replicas available since the new scheduler configuration"

config() {
  cat <<END
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $dir/$identity.kubeconfig}
profiles:
- schedulerName: default-scheduler
- schedulerName: batch-schedluer
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}
END
}

fault() {
  workload Deployment data report 3 'cpu: 1, memory: 2Gi' 'schedulerName: batch-scheduler' | apply
  until_true exactly 3 data report Pending
}
