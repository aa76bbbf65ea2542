# A claim in another zone: the volume of data/orders-db-1 is in zone b, and the node of the
# pool db that was there has been replaced by one in zone c.
complaint="data/orders-db: 1 of 3 replicas unavailable since the node pool was renewed"

nodes() {
  local zone
  for zone in a b c; do
    node general-${zone}1 $zone general 8 32Gi
    node general-${zone}2 $zone general 8 32Gi
    node ssd-${zone}1 $zone ssd 16 64Gi
  done
  node batch-a1 a batch 8 32Gi '{key: dedicated, value: batch, effect: NoSchedule}'
  node db-a1 a db 8 64Gi
  node db-b1 b db 8 64Gi
  node db-c1 c db 8 64Gi
}

fault() {
  apply <<'END'
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal-ssd}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
END
  volume 0 a
  volume 1 b
  volume 2 c
  workload StatefulSet data orders-db 3 'cpu: 2, memory: 16Gi' 'nodeSelector: {pool: db}' | cat - <(
    cat <<'END'
  podManagementPolicy: Parallel
  serviceName: orders-db
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: zonal-ssd, resources: {requests: {storage: 200Gi}}}
END
  ) | apply
  until_true exactly 3 data orders-db Running
  kubectl delete node db-b1 >/dev/null
  node db-c2 c db 8 64Gi | kubectl create -f - >/dev/null
  kubectl delete pod -n data orders-db-1 --force --grace-period=0 >/dev/null 2>&1
  until_true exactly 1 data orders-db Pending
}

# volume creates the volume of replica NUMBER in ZONE, and its claim, bound to it.
volume() {
  local claim="{accessModes: [ReadWriteOnce], storageClassName: zonal-ssd, volumeName: vol-0c51e7$1, resources: {requests: {storage: 200Gi}}}"
  apply <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: vol-0c51e7$1}
spec:
  capacity: {storage: 200Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: zonal-ssd
  persistentVolumeReclaimPolicy: Retain
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-0c51e7$1}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1$2]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: data, name: data-orders-db-$1}
spec: $claim
END
  kubectl wait -n data pvc/data-orders-db-$1 --for=jsonpath='{.status.phase}'=Bound --timeout=60s >/dev/null
}
