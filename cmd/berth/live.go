package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/edge/manifest"
)

// patience is how long an API server may take for one answer.
const patience = time.Minute

// live adds the nodes, pods, priority classes and disruption budgets of a running cluster.
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
	classes, err := client.SchedulingV1().PriorityClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing priority classes: %w", err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	// Pods that have ended take no room and want none.
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	budgets, err := client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pod disruption budgets: %w", err)
	}
	for i := range budgets.Items {
		if err := set.Add(&budgets.Items[i], "policy/v1/PodDisruptionBudget", config.Host); err != nil {
			return err
		}
	}
	for i := range classes.Items {
		if err := set.Add(&classes.Items[i], "scheduling.k8s.io/v1/PriorityClass", config.Host); err != nil {
			return err
		}
	}
	for i := range nodes.Items {
		if err := set.Add(&nodes.Items[i], "v1/Node", config.Host); err != nil {
			return err
		}
	}
	for i := range pods.Items {
		if err := set.Add(&pods.Items[i], "v1/Pod", config.Host); err != nil {
			return err
		}
	}
	return nil
}
