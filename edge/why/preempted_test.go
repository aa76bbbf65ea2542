package why

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/manifest"
)

// The priority of those who preempted is the highest that is known, and is said to be of all only
// where it is. One that is gone has that of its kin if these agree. A class is named if all pods of
// that priority have it.
func TestPreemptedRank(t *testing.T) {
	all := levels{workloads: map[Workload]*level{}, stems: map[stem]*level{}}
	set := func(name string, l *level) {
		all.workloads[Workload{"job", "x", name}] = l
		agree(all.stems, stemOf(Workload{"job", "x", name}), l)
	}
	set("web", &level{})
	set("load-1", &level{100, "batch"})
	set("load-2", &level{100, "batch"})
	set("sync-1", &level{100, "sync"})
	set("scan-1", &level{100, "batch"})
	set("scan-2", &level{100, "sync"})
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
		{[]string{"urgent-3", "load-1"}, " (priority 100 as far as known, class batch, against 0)"},
		{[]string{"urgent-1", "urgent-3", "load-1"}, " (priorities up to 2000 as far as known, class urgent, against 0)"},
		{[]string{"load-1", "sync-1"}, " (priority 100, against 0)"},
		{[]string{"scan-3"}, " (priority 100, against 0)"},
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

// The template of a workload without pods shows their priority only where all classes are known:
// what no class is named in may have that of the default class.
func TestPreemptedRankOfTemplates(t *testing.T) {
	for _, known := range []bool{false, true} {
		set := manifest.NewSet()
		set.Knows.Classes = known
		set.Running = append(set.Running, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "load"},
			Spec: batchv1.JobSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}}})
		c := &Cluster{Set: set}
		if l := c.levels().of(Workload{"job", "x", "load"}); (l != nil) != known {
			t.Errorf("all classes known: %t, priority %+v", known, l)
		}
	}
}
