package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
)

// What the nodes of a lab are marked with, and the sample's pods ask for.
const (
	DiskLabel      = "disktype"  // "ssd" on some nodes
	DedicatedLabel = "dedicated" // "batch" on some nodes: a label and a NoSchedule taint
)

// nodeShapes is the fleet's pattern, repeated every ten nodes.
var nodeShapes = [10]struct {
	cpu, memory    string
	ssd, dedicated bool
}{
	{cpu: "8", memory: "32Gi"},
	{cpu: "8", memory: "32Gi"},
	{cpu: "16", memory: "64Gi", ssd: true},
	{cpu: "8", memory: "32Gi"},
	{cpu: "8", memory: "32Gi"},
	{cpu: "16", memory: "64Gi", dedicated: true},
	{cpu: "8", memory: "32Gi"},
	{cpu: "16", memory: "64Gi"},
	{cpu: "8", memory: "32Gi"},
	{cpu: "32", memory: "128Gi", ssd: true},
}

// Nodes makes a mixed fleet of n nodes, node-0000 and on: in three zones, of
// three sizes, two in ten with an SSD, one in ten set apart by a taint.
func Nodes(n int) []*corev1.Node {
	nodes := make([]*corev1.Node, n)
	for i := range nodes {
		shape := nodeShapes[i%len(nodeShapes)]
		name := fmt.Sprintf("node-%04d", i)
		room := corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(shape.cpu),
			corev1.ResourceMemory:           resource.MustParse(shape.memory),
			corev1.ResourcePods:             resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname:       name,
				corev1.LabelTopologyRegion: "lab",
				corev1.LabelTopologyZone:   fmt.Sprintf("lab-%c", 'a'+i%3),
				corev1.LabelArchStable:     "amd64",
				corev1.LabelOSStable:       "linux",
			}},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
		}
		if shape.ssd {
			node.Labels[DiskLabel] = "ssd"
		}
		if shape.dedicated {
			node.Labels[DedicatedLabel] = "batch"
			node.Spec.Taints = []corev1.Taint{{Key: DedicatedLabel, Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
		}
		nodes[i] = node
	}
	return nodes
}

// CreateNodes creates the nodes that are not there yet, sixteen at a time, and
// waits until all are ready: kwok has played them, and the taint that new nodes
// get is off. Without kwok or the controllers it does not wait.
func (c *Cluster) CreateNodes(ctx context.Context, nodes []*corev1.Node) error {
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i, node := range nodes {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			_, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if !apierrors.IsAlreadyExists(err) {
				errs[i] = err
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("creating nodes: %w", err)
		}
	}
	if c.options.WithoutKWOK || c.options.WithoutControllers {
		return nil
	}
	return c.waitForNodes(ctx, nodes)
}

func (c *Cluster) waitForNodes(ctx context.Context, nodes []*corev1.Node) error {
	factory := informers.NewSharedInformerFactory(c.client, 0)
	lister := factory.Core().V1().Nodes().Lister()
	watching, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.StartWithContext(watching)
	for {
		missing := 0
		for _, node := range nodes {
			if seen, err := lister.Get(node.Name); err != nil || !nodeReady(seen) {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes are not ready: %w", missing, len(nodes), context.Cause(ctx))
		case err := <-c.failed:
			c.failed <- err // for whoever listens
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// nodeReady: the node says so, and no taint says otherwise.
func nodeReady(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
