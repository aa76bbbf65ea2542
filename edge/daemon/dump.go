package daemon

import (
	"context"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// compareTime is how long a dump waits for the API server and the watches.
const compareTime = time.Minute

// Dump logs nodes with their pods, nominations and the queue, and how all this
// differs from what the API server has. The lines are those of kube-scheduler.
func (d *Daemon) Dump(ctx context.Context) {
	var nodes, queue string
	var counts any
	if d.Inspect(ctx, func(m *machine.Machine) {
		nodes, queue, counts = dumpNodes(m), m.Queue().String(), m.Queue().Counts()
	}) != nil {
		return
	}
	d.logger.Info("Dump of cached NodeInfo", "nodes", nodes)
	d.logger.Info("Dump of scheduling queue", "summary", counts, "pods", queue)

	d.logger.V(3).Info("Cache comparer started")
	defer d.logger.V(3).Info("Cache comparer finished")
	ctx, cancel := context.WithTimeout(ctx, compareTime)
	defer cancel()
	for _, resource := range []string{"nodes", "pods"} {
		missed, redundant, err := d.watcher.Mismatch(ctx, resource)
		switch {
		case err != nil:
			d.logger.Error(err, "Failed to compare the cache with the API server", "resource", resource)
		case len(missed)+len(redundant) == 0:
		case resource == "nodes":
			d.logger.Info("Cache mismatch", "missedNodes", missed, "redundantNodes", redundant)
		default:
			d.logger.Info("Cache mismatch", "missedPods", missed, "redundantPods", redundant)
		}
	}
}

// dumpNodes prints each node with what its pods request, its pods, and those that
// are nominated to it.
func dumpNodes(m *machine.Machine) string {
	t := m.Table()
	var nodes []string
	for _, r := range t.All() {
		if t.Node(r) == nil && len(t.Pods(r)) == 0 {
			continue
		}
		nodes = append(nodes, dumpNode(m, t, r))
	}
	return strings.Join(nodes, "\n\n")
}

func dumpNode(m *machine.Machine, t *table.Table, r table.Row) string {
	var b strings.Builder
	terminal.Fprintf(&b, "Node name: %s\nDeleted: %t\n", t.Name(r), t.Node(r) == nil)
	for _, id := range []struct {
		name string
		id   table.Resource
	}{{"milliCPU", table.CPU}, {"memory", table.Memory}, {"ephemeral storage", table.EphemeralStorage}} {
		terminal.Fprintf(&b, "Requested %s: %d of %d\n", id.name, t.Used(id.id)[r], t.Allocatable(id.id)[r])
	}
	terminal.Fprintf(&b, "Scheduled Pods(number: %d of %d):\n", len(t.Pods(r)), t.AllowedPods()[r])
	for _, pl := range t.Pods(r) {
		dumpPod(&b, pl.Pod)
	}
	if nominated := m.Queue().NominatedTo(t.Name(r)); len(nominated) > 0 {
		terminal.Fprintf(&b, "Nominated Pods(number: %d):\n", len(nominated))
		for _, p := range nominated {
			dumpPod(&b, p)
		}
	}
	return b.String()
}

func dumpPod(b *strings.Builder, p *object.Pod) {
	terminal.Fprintf(b, "name: %s, namespace: %s, uid: %s, assumed: %t, nominated node: %s\n", p.Name, p.Namespace, p.UID, p.NodeName == "", p.NominatedNode)
}
