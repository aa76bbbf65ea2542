package plugintest

import (
	"maps"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Kept keeps a plugin's answers as an engine does: by signature, and computed again for
// rows that changed. Check compares them with fresh ones. It is for plugins without
// cells.
type Kept struct {
	Plugin framework.Plugin
	// Fresh, when set, gives the expected answers in place of Plugin, as it keeps nothing
	// between pods.
	Fresh   *framework.Plugin
	Table   *table.Table
	classes map[string]*class // by signature
	// Shared counts the pods that were checked against answers for another pod.
	Shared int
}

// class is the answers kept for the pods with one signature.
type class struct {
	pod      *object.Pod
	prepared framework.PreFilterResult
	scoring  framework.PreScoreResult
	answer   Answer
	revision uint64               // of the table, up to which the answer is refreshed
	names    map[table.Row]string // names of the nodes in the answer
}

// Check compares the answers kept for the pod's signature with fresh ones for the pod.
func (k *Kept) Check(t Fatal, p *object.Pod) {
	t.Helper()
	if k.Plugin.CellFilter != nil || k.Plugin.CellScore != nil {
		t.Fatalf("%s: Kept knows no cells", k.Plugin.Name)
	}
	key := ""
	if k.Plugin.Sign != nil {
		key = string(k.Plugin.Sign(nil, k.Table, p))
	}
	c := k.classes[key]
	if c == nil {
		c = k.newClass(p)
		if k.classes == nil {
			k.classes = map[string]*class{}
		}
		k.classes[key] = c
	} else if c.pod != p {
		k.Shared++
	}
	k.refresh(c)
	plugin := k.Plugin
	if k.Fresh != nil {
		plugin = *k.Fresh
	}
	want := Ask(t, plugin, k.Table, p)
	switch {
	case c.answer.Rejected != want.Rejected:
		t.Fatalf("pod %s: rejected %q by what is kept of %s, afresh %q (signature %q)", p.Name, c.answer.Rejected, c.pod.Name, want.Rejected, key)
	case want.Rejected != "":
	case !maps.Equal(c.answer.Blocked, want.Blocked) || !maps.Equal(c.answer.Scores, want.Scores):
		t.Fatalf("pod %s, by what is kept of %s (signature %q):\n%v\n%v\nafresh:\n%v\n%v", p.Name, c.pod.Name, key,
			c.answer.Blocked, c.answer.Scores, want.Blocked, want.Scores)
	}
}

// newClass returns a class for the pod, with PreFilter and PreScore done and no answers
// yet.
func (k *Kept) newClass(p *object.Pod) *class {
	c := &class{pod: p, names: map[table.Row]string{}}
	if k.Plugin.PreFilter != nil {
		c.prepared = k.Plugin.PreFilter(k.Table, p)
	}
	if c.answer.Rejected = text(c.prepared.Status); c.answer.Rejected != "" {
		return c
	}
	if k.Plugin.PreScore != nil {
		c.scoring = k.Plugin.PreScore(k.Table, p)
	}
	if k.Plugin.Filter != nil && !c.prepared.Skip {
		c.answer.Blocked = map[string]string{}
	}
	if k.Plugin.Score != nil && !c.scoring.Skip {
		c.answer.Scores = map[string]int64{}
	}
	return c
}

// refresh calls the plugin again for the rows that changed since the last call.
func (k *Kept) refresh(c *class) {
	changed := k.Table.AppendChanged(nil, c.revision, k.Table.Rows())
	for _, r := range changed {
		delete(c.answer.Blocked, c.names[r])
		delete(c.answer.Scores, c.names[r])
		delete(c.names, r)
	}
	for _, r := range changed {
		if k.Table.Node(r) == nil {
			continue
		}
		name, rows := k.Table.Name(r), k.Table.All()[r:r+1]
		c.names[r] = name
		in := framework.Input{Table: k.Table, Pod: c.pod, State: c.prepared.State, Rules: c.prepared.Rules}
		if c.answer.Blocked != nil {
			var v [1]framework.Verdict
			k.Plugin.Filter(&in, rows, v[:])
			c.answer.Blocked[name] = explained(&k.Plugin, &in, r, v[0])
		}
		if in.State = c.scoring.State; c.answer.Scores != nil {
			var s [1]int64
			k.Plugin.Score(&in, rows, s[:])
			c.answer.Scores[name] = s[0]
		}
	}
	c.revision = k.Table.Revision()
}
