package conform

import (
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Print writes a disagreement as YAML documents that stand for themselves: the
// configuration, the cluster, the pods in order, the changes, and as comments
// what differs.
func Print(out io.Writer, d *Disagreement) error {
	p := printer{out: out}
	p.comment("mix %s, seed %d, after %d decisions", d.World.Mix, d.World.Seed, d.At)
	for _, diff := range d.Diffs {
		p.comment("%s", diff)
	}
	if d.World.Config != "" {
		p.line("--- # KubeSchedulerConfiguration")
		p.line(d.World.Config)
	}
	for _, n := range d.World.Nodes {
		p.document("node", n)
	}
	for _, pod := range d.World.Bound {
		p.document("runs from the start", pod)
	}
	for _, b := range d.World.Budgets {
		p.document("budget", b)
	}
	changes := d.World.Changes
	for i, pod := range d.World.Pending {
		for len(changes) > 0 && changes[0].After <= i {
			p.document("then: "+changes[0].String(), changes[0].Object())
			changes = changes[1:]
		}
		p.document("then: decide", pod)
	}
	for _, c := range changes {
		p.document("then: "+c.String(), c.Object())
	}
	if d.Want != nil {
		p.document("kube-scheduler says", d.Want)
		p.document("Berth says", d.Got)
	}
	return p.err
}

// printer writes until the first error, which it keeps.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, text)
	}
}

func (p *printer) comment(format string, args ...any) { p.line("# " + fmt.Sprintf(format, args...)) }

func (p *printer) document(what string, object any) {
	t := tree(object)
	if n, ok := object.(*v1.Node); ok && n.Status.NodeInfo == (v1.NodeSystemInfo{}) {
		t, _ = remove(t, []any{"status", "nodeInfo"})
		t, _ = remove(t, []any{"status", "daemonEndpoints"})
	}
	text, err := yaml.Marshal(t)
	if err != nil && p.err == nil {
		p.err = err
	}
	p.line("--- # " + what)
	p.line(string(text))
}
