package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/edge/manifest"
)

// patience is how long an API server may take for one answer.
const patience = time.Minute

// live adds what a running cluster has of everything that a simulation looks at.
func live(ctx context.Context, set *manifest.Set, kubeconfig, kubecontext string) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: kubecontext},
	).ClientConfig()
	if err != nil {
		return err
	}
	config.Timeout = patience
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, l := range lists(ctx, client) {
		list, err := l.list()
		if err != nil {
			return fmt.Errorf("listing %s: %w", l.kind, err)
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			return set.Add(o.(metav1.Object), l.kind, config.Host)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listing asks for all objects of a kind.
type listing struct {
	kind string
	list func() (runtime.Object, error)
}

func lists(ctx context.Context, c kubernetes.Interface) []listing {
	all := metav1.ListOptions{}
	// Pods that have ended take no room and want none.
	unfinished := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	core, apps, storage, devices := c.CoreV1(), c.AppsV1(), c.StorageV1(), c.ResourceV1()
	return []listing{
		{"scheduling.k8s.io/v1/PriorityClass", func() (runtime.Object, error) { return c.SchedulingV1().PriorityClasses().List(ctx, all) }},
		{"v1/Node", func() (runtime.Object, error) { return core.Nodes().List(ctx, all) }},
		{"v1/Namespace", func() (runtime.Object, error) { return core.Namespaces().List(ctx, all) }},
		{"v1/Pod", func() (runtime.Object, error) { return core.Pods("").List(ctx, unfinished) }},
		{"policy/v1/PodDisruptionBudget", func() (runtime.Object, error) { return c.PolicyV1().PodDisruptionBudgets("").List(ctx, all) }},
		{"v1/Service", func() (runtime.Object, error) { return core.Services("").List(ctx, all) }},
		{"v1/ReplicationController", func() (runtime.Object, error) { return core.ReplicationControllers("").List(ctx, all) }},
		{"apps/v1/ReplicaSet", func() (runtime.Object, error) { return apps.ReplicaSets("").List(ctx, all) }},
		{"apps/v1/StatefulSet", func() (runtime.Object, error) { return apps.StatefulSets("").List(ctx, all) }},
		{"v1/PersistentVolumeClaim", func() (runtime.Object, error) { return core.PersistentVolumeClaims("").List(ctx, all) }},
		{"v1/PersistentVolume", func() (runtime.Object, error) { return core.PersistentVolumes().List(ctx, all) }},
		{"storage.k8s.io/v1/StorageClass", func() (runtime.Object, error) { return storage.StorageClasses().List(ctx, all) }},
		{"storage.k8s.io/v1/CSINode", func() (runtime.Object, error) { return storage.CSINodes().List(ctx, all) }},
		{"storage.k8s.io/v1/CSIDriver", func() (runtime.Object, error) { return storage.CSIDrivers().List(ctx, all) }},
		{"storage.k8s.io/v1/CSIStorageCapacity", func() (runtime.Object, error) { return storage.CSIStorageCapacities("").List(ctx, all) }},
		{"resource.k8s.io/v1/ResourceClaim", func() (runtime.Object, error) { return devices.ResourceClaims("").List(ctx, all) }},
		{"resource.k8s.io/v1/ResourceSlice", func() (runtime.Object, error) { return devices.ResourceSlices().List(ctx, all) }},
		{"resource.k8s.io/v1/DeviceClass", func() (runtime.Object, error) { return devices.DeviceClasses().List(ctx, all) }},
		{"storage.k8s.io/v1/VolumeAttachment", func() (runtime.Object, error) { return storage.VolumeAttachments().List(ctx, all) }},
	}
}
