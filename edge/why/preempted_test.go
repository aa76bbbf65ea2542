package why

import "testing"

// The priority of those who preempted is the highest that is known, and is said to be of all only
// where it is. One that is gone has that of its kin if these agree.
func TestPreemptedRank(t *testing.T) {
	all := levels{workloads: map[Workload]*level{}, stems: map[stem]*level{}}
	set := func(name string, l *level) {
		all.workloads[Workload{"job", "x", name}] = l
		agree(all.stems, stemOf(Workload{"job", "x", name}), l)
	}
	set("web", &level{})
	set("load-1", &level{100, "batch"})
	set("load-2", &level{100, "batch"})
	set("urgent-1", &level{2000, "urgent"})
	set("urgent-2", &level{1000, ""})
	for _, c := range []struct {
		by   []string
		want string
	}{
		{[]string{"load-1", "load-2"}, " (priority 100, class batch, against 0)"},
		{[]string{"load-3"}, " (priority 100, class batch, against 0)"},
		{[]string{"urgent-2"}, " (priority 1000, against 0)"},
		{[]string{"urgent-3"}, ""},
		{[]string{"urgent-3", "load-1"}, " (priorities up to 100, class batch, against 0)"},
		{[]string{"urgent-1", "urgent-2", "load-1"}, " (priorities up to 2000, class urgent, against 0)"},
		{[]string{"web"}, ""},
		{[]string{"gone"}, ""},
	} {
		p := &Preempted{by: map[Workload]bool{}}
		for _, name := range c.by {
			p.by[Workload{"job", "x", name}] = true
		}
		p.rank(Workload{"job", "x", "web"}, all)
		if got := p.priorityText(); got != c.want {
			t.Errorf("by %v: %q, not %q", c.by, got, c.want)
		}
	}
}
